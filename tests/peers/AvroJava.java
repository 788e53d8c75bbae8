import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/**
 * Avro's Java library: each line of the input is a request, each line of the output its response, both JSON.
 *
 * {"text", "references", "validateDefaults"}: parse a schema. {"reader", "writer"}: compare two.
 */
public class AvroJava {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      output.println(JSON.writeValueAsString(response(JSON.readTree(line))));
    }
  }

  private static ObjectNode response(JsonNode request) {
    try {
      return request.has("text") ? parsed(request) : compared(request);
    } catch (Exception | StackOverflowError error) {
      return JSON.createObjectNode().put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
    }
  }

  private static ObjectNode parsed(JsonNode request) {
    Schema.Parser parser = new Schema.Parser();
    parser.setValidateDefaults(request.get("validateDefaults").booleanValue());
    List<Schema> references = new ArrayList<>();
    for (JsonNode reference : request.get("references")) {
      references.add(parser.parse(reference.textValue()));
    }
    Schema schema = parser.parse(request.get("text").textValue());
    ObjectNode response = JSON.createObjectNode();
    response.put("canonical", schema.toString(references, false));
    response.put("resolved", schema.toString());
    return response;
  }

  private static ObjectNode compared(JsonNode request) {
    Schema reader = new Schema.Parser().parse(request.get("reader").textValue());
    Schema writer = new Schema.Parser().parse(request.get("writer").textValue());
    ObjectNode response = JSON.createObjectNode();
    ArrayNode found = response.putArray("incompatibilities");
    SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult().getIncompatibilities().forEach(
        one -> found.addArray().add(one.getType().name()).add(one.getLocation()).add(one.getMessage()));
    return response;
  }
}
