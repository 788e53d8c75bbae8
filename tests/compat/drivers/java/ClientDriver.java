import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache Kafka's own clients behind JSON lines: one command per line on standard input, one response per line on standard output. */
public final class ClientDriver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(200);

    private final String bootstrap;
    private final Admin admin;
    private final Members members;
    private final Producers producers;
    private final Groups groups;

    private ClientDriver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        this.members = new Members(bootstrap);
        this.producers = new Producers(bootstrap);
        this.groups = new Groups(admin);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream responses = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        ClientDriver driver = new ClientDriver(arguments[0]);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            responses.println(JSON.writeValueAsString(driver.respond(JSON.readTree(line))));
        }
        driver.admin.close();
    }

    private Map<String, Object> respond(JsonNode command) {
        Map<String, Object> response = new HashMap<>();
        try {
            response.put("result", call(command));
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            response.put("error", errorName(cause));
            response.put("message", String.valueOf(cause));
        }
        return response;
    }

    private static String errorName(Throwable cause) {
        if (cause instanceof OffsetOutOfRangeException || cause instanceof NoOffsetForPartitionException) {
            return Errors.OFFSET_OUT_OF_RANGE.name();
        }
        return ErrorNames.of(cause);
    }

    private Object call(JsonNode command) throws Exception {
        String call = command.get("call").asText();
        return switch (call.substring(0, call.indexOf('_') + 1)) {
            case "consumer_", "transformer_" -> members.call(call, command);
            case "producer_" -> producers.call(call, command);
            case "group_" -> groups.call(call, command);
            default -> callAboutTopic(call, command.get("topic").asText(), command);
        };
    }

    private Object callAboutTopic(String call, String topic, JsonNode command) throws Exception {
        return switch (call) {
            case "create_topic" -> createTopic(topic, command);
            case "delete_topic" -> done(admin.deleteTopics(List.of(topic)).all(), command);
            case "create_partitions" -> createPartitions(topic, command);
            case "partition_count" -> partitionCount(topic, command);
            case "produce" -> produce(topic, command);
            case "consume" -> consume(topic, command);
            case "list_offset" -> listOffset(topic, command);
            case "delete_records" -> deleteRecords(topic, command);
            case "describe_config" -> describeConfig(topic, command);
            case "alter_config" -> alterConfig(topic, command);
            default -> throw new IllegalArgumentException("no such call: " + call);
        };
    }

    private static <T> T done(Future<T> future, JsonNode command) throws Exception {
        return future.get(command.get("timeout_ms").asLong(), TimeUnit.MILLISECONDS);
    }

    private Object createTopic(String topic, JsonNode command) throws Exception {
        NewTopic created = new NewTopic(topic, command.get("partitions").asInt(), (short) -1).configs(config(command));
        return done(admin.createTopics(List.of(created)).all(), command);
    }

    private Object createPartitions(String topic, JsonNode command) throws Exception {
        NewPartitions more = NewPartitions.increaseTo(command.get("total").asInt());
        return done(admin.createPartitions(Map.of(topic, more)).all(), command);
    }

    private Object partitionCount(String topic, JsonNode command) throws Exception {
        if (!done(admin.listTopics().names(), command).contains(topic)) {
            return 0;
        }
        return done(admin.describeTopics(List.of(topic)).topicNameValues().get(topic), command).partitions().size();
    }

    private Object produce(String topic, JsonNode command) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("acks", command.get("acks").asText());
        settings.put("compression.type", command.get("codec").asText());
        settings.put("enable.idempotence", command.get("idempotent").asBoolean());
        settings.put("max.request.size", command.get("max_bytes").asInt());
        settings.put("buffer.memory", 4L * command.get("max_bytes").asInt());
        settings.put("linger.ms", 5);
        List<Long> offsets = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : command.get("records")) {
                sent.add(producer.send(producerRecord(topic, record)));
            }
            producer.flush();
            for (Future<RecordMetadata> each : sent) {
                offsets.add(done(each, command).offset());
            }
        }
        return offsets;
    }

    private static ProducerRecord<byte[], byte[]> producerRecord(String topic, JsonNode record) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.get("headers")) {
            headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
        }
        Long timestamp = record.get("timestamp").isNull() ? null : record.get("timestamp").asLong();
        int partition = record.get("partition").asInt();
        return new ProducerRecord<>(topic, partition, timestamp, bytes(record.get("key")), bytes(record.get("value")), headers);
    }

    private Object consume(String topic, JsonNode command) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("auto.offset.reset", command.get("reset").asText());
        settings.put("enable.auto.commit", false);
        settings.put("allow.auto.create.topics", false);
        settings.put("max.partition.fetch.bytes", command.get("max_bytes").asInt());
        int count = command.get("count").asInt();
        List<Object> received = new ArrayList<>();
        TopicPartition partition = new TopicPartition(topic, command.get("partition").asInt());
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(command.get("timeout_ms").asLong());
        var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        try {
            consumer.assign(List.of(partition));
            seek(consumer, partition, command);
            while (received.size() < count && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    if (received.size() < count) {
                        received.add(described(record));
                    }
                }
            }
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ZERO)); // not waiting for the fetch that is still out
        }
        return received;
    }

    private static void seek(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, JsonNode command) {
        long value = command.get("value").asLong();
        switch (command.get("start").asText()) {
            case "earliest" -> consumer.seekToBeginning(Set.of(partition));
            case "latest" -> consumer.seekToEnd(Set.of(partition));
            case "timestamp" -> {
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, value)).get(partition);
                if (found == null) {
                    consumer.seekToEnd(Set.of(partition));
                } else {
                    consumer.seek(partition, found.offset());
                }
            }
            default -> consumer.seek(partition, value);
        }
    }

    private static Map<String, Object> described(ConsumerRecord<byte[], byte[]> record) {
        List<List<String>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            List<String> pair = new ArrayList<>();
            pair.add(header.key());
            pair.add(text(header.value()));
            headers.add(pair);
        }
        Map<String, Object> described = new HashMap<>();
        described.put("offset", record.offset());
        described.put("timestamp", record.timestamp());
        described.put("key", text(record.key()));
        described.put("value", text(record.value()));
        described.put("headers", headers);
        return described;
    }

    private Object listOffset(String topic, JsonNode command) throws Exception {
        TopicPartition partition = new TopicPartition(topic, command.get("partition").asInt());
        OffsetSpec spec = switch (command.get("position").asText()) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            case "max_timestamp" -> OffsetSpec.maxTimestamp();
            default -> OffsetSpec.forTimestamp(command.get("value").asLong());
        };
        return done(admin.listOffsets(Map.of(partition, spec)).partitionResult(partition), command).offset();
    }

    private Object deleteRecords(String topic, JsonNode command) throws Exception {
        TopicPartition partition = new TopicPartition(topic, command.get("partition").asInt());
        RecordsToDelete cut = RecordsToDelete.beforeOffset(command.get("before_offset").asLong());
        return done(admin.deleteRecords(Map.of(partition, cut)).lowWatermarks().get(partition), command).lowWatermark();
    }

    private Object describeConfig(String topic, JsonNode command) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Map<String, String> values = new HashMap<>();
        for (ConfigEntry entry : done(admin.describeConfigs(List.of(resource)).all(), command).get(resource).entries()) {
            values.put(entry.name(), entry.value());
        }
        return values;
    }

    private Object alterConfig(String topic, JsonNode command) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        List<AlterConfigOp> changes = new ArrayList<>();
        config(command).forEach(
            (name, value) -> changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        return done(admin.incrementalAlterConfigs(Map.of(resource, changes)).all(), command);
    }

    private static Map<String, String> config(JsonNode command) {
        Map<String, String> values = new HashMap<>();
        command.get("config").properties().forEach(entry -> values.put(entry.getKey(), entry.getValue().asText()));
        return values;
    }

    private static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
