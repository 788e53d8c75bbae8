import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import java.security.Policy;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's commands one after the other in this process. A line of the input is the command's own standard input in
 * base 64, its class and its arguments, separated by tabs; the answer is a line with the exit code, the standard output
 * and the standard error in base 64.
 */
public class KafkaTools {
    /** Instead of the end of the process. Some commands print what they catch: the name tells such lines. */
    private static class ToolExit extends Error {
        private static final long serialVersionUID = 1L;

        ToolExit() {
            super("ToolExit");
        }
    }

    /** Allows everything but System.exit, by which argparse4j ends commands after their help. */
    @SuppressWarnings("removal")
    private static class NoExit extends SecurityManager {
        @Override
        public void checkExit(int status) {
            code = code == null ? status : code;
            throw new ToolExit();
        }

        @Override
        public void checkPermission(Permission permission) {
        }
    }

    @SuppressWarnings("removal")
    private static class AllAllowed extends Policy {
        @Override
        public boolean implies(ProtectionDomain domain, Permission permission) {
            return true;
        }
    }

    private static Integer code;
    private static final List<Runnable> shutdownHooks = new ArrayList<>();

    @SuppressWarnings("removal")
    public static void main(String[] arguments) throws IOException {
        Policy.setPolicy(new AllAllowed());
        System.setSecurityManager(new NoExit());
        PrintStream answers = System.out;
        Exit.setExitProcedure((status, message) -> {
            code = code == null ? status : code;
            throw new ToolExit();
        });
        keepProcess();
        Exit.setShutdownHookAdder((name, hook) -> shutdownHooks.add(hook));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t", -1);
            ByteArrayOutputStream output = new ByteArrayOutputStream();
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
            System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(words[0])));
            run(words[1], Arrays.copyOfRange(words, 2, words.length));
            shutDown();
            answers.println(code + " " + encoded(output) + " " + encoded(errors) + ".");
        }
    }

    /** Commands whose options are argparse4j's end the process with System.exit. */
    @SuppressWarnings("removal")
    private static void keepProcess() {
        Policy.setPolicy(new Policy() {
            @Override
            public boolean implies(ProtectionDomain domain, Permission permission) {
                return true;
            }
        });
        System.setSecurityManager(new SecurityManager() {
            @Override
            public void checkExit(int status) {
                code = code == null ? status : code;
                throw new ToolExit();
            }
        });
    }

    private static void run(String tool, String[] arguments) {
        code = null;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof ToolExit)) {
                System.err.println("Exception in thread \"main\" " + thrown.getCause());
                code = 1;
            }
        } catch (ReflectiveOperationException missing) {
            System.err.println(missing);
            code = -1;
        }
        code = code == null ? 0 : code;
    }

    /** What a command leaves to the end of its process: a producer sends its last records, for one. */
    private static void shutDown() {
        shutdownHooks.forEach(Runnable::run);
        shutdownHooks.clear();
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}

/** A command like Kafka's: prints the name, the exception and the message of each error code, separated by tabs. */
class ErrorTable {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            System.out.println(error.name() + "\t" + error.exceptionName() + "\t" + error.message());
        }
    }
}

/**
 * Kafka's own measures of quotas. The arguments are the number of samples, their size in ms, the limit, and steps
 * "time:amount" with commas between them. After each step it prints the rate, its window in ms, and the tokens of a bucket.
 */
class QuotaRates {
    public static void main(String[] arguments) {
        MetricConfig config = new MetricConfig()
            .samples(Integer.parseInt(arguments[0]))
            .timeWindow(Long.parseLong(arguments[1]), TimeUnit.MILLISECONDS)
            .quota(Quota.upperBound(Double.parseDouble(arguments[2])));
        Rate rate = new Rate();
        TokenBucket bucket = new TokenBucket();
        for (String step : arguments[3].split(",")) {
            long now = Long.parseLong(step.split(":")[0]);
            double amount = Double.parseDouble(step.split(":")[1]);
            rate.record(config, amount, now);
            bucket.record(config, amount, now);
            System.out.println(
                rate.measure(config, now) + " " + rate.windowSize(config, now) + " " + bucket.measure(config, now));
        }
    }
}
