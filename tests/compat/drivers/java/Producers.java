import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/** The transactional producers that were opened and not closed, by number. */
final class Producers {
    private final String bootstrap;
    private final Map<Integer, KafkaProducer<String, String>> opened = new HashMap<>();
    private int last;

    Producers(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    static KafkaProducer<String, String> open(String bootstrap, String transactionalId, int timeoutMs) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", transactionalId);
        settings.put("transaction.timeout.ms", timeoutMs);
        var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        try {
            producer.initTransactions();
        } catch (RuntimeException refused) {
            producer.close(Duration.ZERO);
            throw refused;
        }
        return producer;
    }

    Object call(String call, JsonNode command) throws Exception {
        if (call.equals("producer_open")) {
            String transactionalId = command.get("transactional_id").asText();
            opened.put(++last, open(bootstrap, transactionalId, command.get("transaction_timeout_ms").asInt()));
            return last;
        }
        int number = command.get("producer").asInt();
        KafkaProducer<String, String> producer = opened.get(number);
        switch (call) {
            case "producer_begin" -> producer.beginTransaction();
            case "producer_send" -> send(producer, command);
            case "producer_commit" -> producer.commitTransaction();
            case "producer_abort" -> producer.abortTransaction();
            case "producer_close" -> opened.remove(number).close(Duration.ZERO);
            default -> throw new IllegalArgumentException("no such call: " + call);
        }
        return null;
    }

    private static void send(KafkaProducer<String, String> producer, JsonNode command) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode value : command.get("values")) {
            String topic = command.get("topic").asText();
            sent.add(producer.send(new ProducerRecord<>(topic, command.get("partition").asInt(), null, value.asText())));
        }
        for (Future<RecordMetadata> each : sent) {
            each.get(command.get("timeout_ms").asLong(), TimeUnit.MILLISECONDS);
        }
    }
}
