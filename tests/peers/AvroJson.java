import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;

/**
 * Converts between Avro's binary form and its JSON encoding, as Java does it. A line is a direction, a schema and a value with tabs
 * between them: `encode` reads JSON and prints `ok` and the bytes in hexadecimal, `decode` reads those and prints `ok` and JSON. Both print
 * `error` and a reason in one line if Java refuses.
 */
public final class AvroJson {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", 3);
            String result;
            try {
                Schema schema = new Schema.Parser().parse(parts[1]);
                result = "ok\t" + (parts[0].equals("encode") ? encoded(schema, parts[2]) : decoded(schema, parts[2]));
            } catch (Exception problem) {
                result = "error\t" + problem.toString().replaceAll("\\s+", " ");
            }
            System.out.write((result + "\n").getBytes(StandardCharsets.UTF_8));
            System.out.flush();
        }
    }

    private static String encoded(Schema schema, String json) throws Exception {
        Object value = new GenericDatumReader<>(schema).read(null, DecoderFactory.get().jsonDecoder(schema, json));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
        new GenericDatumWriter<>(schema).write(value, encoder);
        encoder.flush();
        return HexFormat.of().formatHex(bytes.toByteArray());
    }

    private static String decoded(Schema schema, String hex) throws Exception {
        byte[] bytes = HexFormat.of().parseHex(hex);
        Object value = new GenericDatumReader<>(schema).read(null, DecoderFactory.get().binaryDecoder(bytes, null));
        ByteArrayOutputStream json = new ByteArrayOutputStream();
        JsonEncoder encoder = EncoderFactory.get().jsonEncoder(schema, json);
        new GenericDatumWriter<>(schema).write(value, encoder);
        encoder.flush();
        return json.toString(StandardCharsets.UTF_8);
    }
}
