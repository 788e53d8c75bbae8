import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/** The consumers and transformers that were opened and not closed, by number. */
final class Members {
    private final String bootstrap;
    private final Map<Integer, PollingConsumer> consumers = new HashMap<>();
    private final Map<Integer, Transformer> transformers = new HashMap<>();
    private int last;

    Members(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    Object call(String call, JsonNode command) throws Exception {
        return call.startsWith("consumer_") ? consumer(call, command) : transformer(call, command);
    }

    private Object consumer(String call, JsonNode command) throws Exception {
        if (call.equals("consumer_open")) {
            consumers.put(++last, new PollingConsumer(bootstrap, command));
            return last;
        }
        int number = command.get("consumer").asInt();
        PollingConsumer consumer = consumers.get(number);
        return switch (call) {
            case "consumer_look" -> consumer.look(command.get("after").asInt());
            case "consumer_commit" -> consumer.commit(command.get("offsets"), command.get("wait").asBoolean());
            case "consumer_committed" -> consumer.committed(command.get("places"));
            case "consumer_seek" -> {
                TopicPartition partition = new TopicPartition(command.get("topic").asText(), command.get("partition").asInt());
                yield consumer.seek(partition, command.get("offset").asLong());
            }
            case "consumer_close" -> consumers.remove(number).close();
            default -> throw new IllegalArgumentException("no such call: " + call);
        };
    }

    private Object transformer(String call, JsonNode command) throws Exception {
        if (call.equals("transformer_open")) {
            transformers.put(++last, new Transformer(bootstrap, command));
            return last;
        }
        int number = command.get("transformer").asInt();
        return switch (call) {
            case "transformer_look" -> transformers.get(number).look();
            case "transformer_close" -> transformers.remove(number).close();
            default -> throw new IllegalArgumentException("no such call: " + call);
        };
    }
}
