import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Consumes, writes each value in upper case to the same partition of another topic, and commits both in one transaction. */
final class Transformer {
    private static final Duration POLL = Duration.ofMillis(100);

    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final String target;
    private final Thread thread = new Thread(this::run);
    private boolean abortNext; // of the thread
    private volatile int committed;
    private volatile int aborted;
    private volatile String error;
    private volatile boolean closed;

    Transformer(String bootstrap, JsonNode words) {
        target = words.get("target").asText();
        abortNext = words.get("abort_first").asBoolean();
        producer = Producers.open(bootstrap, words.get("transactional_id").asText(), words.get("transaction_timeout_ms").asInt());
        consumer = new KafkaConsumer<>(
            PollingConsumer.settings(bootstrap, words), new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(words.get("topics").get(0).asText()));
        thread.setDaemon(true);
        thread.start();
    }

    Map<String, Object> look() {
        Map<String, Object> seen = new HashMap<>();
        seen.put("committed", committed);
        seen.put("aborted", aborted);
        seen.put("error", error);
        return seen;
    }

    Object close() throws InterruptedException {
        closed = true;
        thread.join();
        return null;
    }

    private void run() {
        try (consumer; producer) {
            while (!closed) {
                ConsumerRecords<String, String> records = consumer.poll(POLL);
                if (!records.isEmpty()) {
                    transform(records);
                }
            }
        } catch (Exception failure) { // reported by the next look at it
            error = ErrorNames.of(failure) + " " + failure;
        }
    }

    private void transform(ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        producer.beginTransaction();
        for (ConsumerRecord<String, String> record : records) {
            producer.send(new ProducerRecord<>(target, record.partition(), null, record.value().toUpperCase()));
            ends.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
        if (abortNext) {
            abortNext = false;
            producer.abortTransaction();
            for (TopicPartition partition : records.partitions()) {
                consumer.seek(partition, records.records(partition).get(0).offset());
            }
            aborted++;
        } else {
            producer.commitTransaction();
            committed++;
        }
    }
}
