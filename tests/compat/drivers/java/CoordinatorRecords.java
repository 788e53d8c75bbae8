import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;

/**
 * Reads records of an internal topic with Kafka's own classes: a line of hexadecimal key and value in, a line out with the
 * class of the key, both as JSON, and their bytes as Kafka writes them. The argument is the class that knows the records.
 */
public final class CoordinatorRecords {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        PrintStream responses = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        CoordinatorRecordSerde serde =
            (CoordinatorRecordSerde) Class.forName(arguments[0]).getDeclaredConstructor().newInstance();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            CoordinatorRecord record = serde.deserialize(bytes(words[0]), bytes(words[1]));
            short version = record.value().version();
            responses.println(String.join("\t",
                record.key().getClass().getSimpleName(),
                JSON.writeValueAsString(json(record.key(), (short) 0)),
                JSON.writeValueAsString(json(record.value().message(), version)),
                HEX.formatHex(serde.serializeKey(record)),
                HEX.formatHex(serde.serializeValue(record))));
        }
    }

    private static ByteBuffer bytes(String hexadecimal) {
        return ByteBuffer.wrap(HEX.parseHex(hexadecimal));
    }

    private static JsonNode json(ApiMessage message, short version) throws Exception {
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        return (JsonNode) converter.getMethod("write", message.getClass(), short.class).invoke(null, message, version);
    }
}
