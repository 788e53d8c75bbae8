import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * What Kafka counts of a response: its error codes, as AbstractResponse.errorCounts gives them.
 * A line in: API key, version, the body in hex. A line out: code=count, separated by spaces, in the order of the codes.
 */
final class ErrorCounts {
    private ErrorCounts() {
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            ApiKeys key = ApiKeys.forId(Integer.parseInt(words[0]));
            ByteBuffer body = ByteBuffer.wrap(HexFormat.of().parseHex(words[2]));
            System.out.println(counted(key, Short.parseShort(words[1]), body));
        }
    }

    private static String counted(ApiKeys key, short version, ByteBuffer body) {
        Map<Short, Integer> counts = new TreeMap<>();
        AbstractResponse response = AbstractResponse.parseResponse(key, new ByteBufferAccessor(body), version);
        for (Map.Entry<Errors, Integer> each : response.errorCounts().entrySet()) {
            counts.put(each.getKey().code(), each.getValue());
        }
        return counts.entrySet().stream()
                .map(each -> each.getKey() + "=" + each.getValue()).collect(Collectors.joining(" "));
    }
}
