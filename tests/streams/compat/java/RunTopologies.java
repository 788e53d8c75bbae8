import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Runs topologies in Kafka Streams' TopologyTestDriver. A line of the input is a job, {"topology": name, "stores": "RocksDB"
 * or "InMemory", "cache": its size in bytes, "steps": [{"topic", "key", "value", "timestamp", "headers"} or
 * {"advance_wall_clock_ms"}]}; a line of the output is what it gave: for each topic the records, with the number of the
 * step that wrote them, and the stores.
 */
public final class RunTopologies {
    private static final String UNTHROTTLED_FINAL_RESULTS = "__emit.interval.ms.kstreams.windowed.aggregation__";
    private static final String UNTHROTTLED_OUTER_JOINS = "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__";
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final TopologyTestDriver driver;
    private final Map<String, TestInputTopic<String, String>> inputs = new TreeMap<>();
    private final ObjectNode topics = JsonNodeFactory.instance.objectNode();

    private RunTopologies(TopologyTestDriver driver) {
        this.driver = driver;
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Topologies topologies = new Topologies();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(run(topologies, MAPPER.readTree(line)));
        }
        output.flush();
    }

    private static ObjectNode run(Topologies topologies, JsonNode job) {
        String name = job.get("topology").asText();
        ObjectNode result = JsonNodeFactory.instance.objectNode().put("topology", name);
        try {
            var topology = topologies.build(name);
            result.put("description", topology.describe().toString());
            Properties settings = settings(job.get("stores").asText(), job.get("cache").asLong());
            try (var driver = new TopologyTestDriver(topology, settings, Instant.ofEpochMilli(0))) {
                RunTopologies runner = new RunTopologies(driver);
                runner.runSteps(job.get("steps"));
                result.set("topics", runner.topics);
                if (job.get("cache").asLong() == 0) { // through a cache a store also shows what has expired
                    result.set("stores", StoreContents.of(driver));
                }
            }
        } catch (RuntimeException failure) {
            result.put("error", failure + (failure.getCause() == null ? "" : ": " + failure.getCause()));
        }
        return result;
    }

    private static Properties settings(String stores, long cache) {
        Properties settings = new Properties();
        settings.put("application.id", "compat");
        settings.put("bootstrap.servers", "none:9092");
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        settings.put("statestore.cache.max.bytes", cache);
        settings.put("state.dir", System.getProperty("java.io.tmpdir"));
        settings.put(UNTHROTTLED_OUTER_JOINS, 0L);
        settings.put(UNTHROTTLED_FINAL_RESULTS, 0L);
        settings.put("dsl.store.suppliers.class", stores.equals("RocksDB")
            ? BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class
            : StoresInMemory.class);
        return settings;
    }

    private void runSteps(JsonNode steps) {
        int number = 0;
        for (JsonNode step : steps) {
            if (step.has("advance_wall_clock_ms")) {
                driver.advanceWallClockTime(Duration.ofMillis(step.get("advance_wall_clock_ms").asLong()));
            } else {
                pipe(step);
            }
            collect(number++);
        }
    }

    private void pipe(JsonNode step) {
        RecordHeaders headers = new RecordHeaders();
        for (JsonNode header : step.path("headers")) {
            headers.add(header.get(0).asText(), header.get(1).asText().getBytes(StandardCharsets.UTF_8));
        }
        String key = step.get("key").textValue();
        String value = step.get("value").textValue();
        inputs.computeIfAbsent(step.get("topic").asText(),
                topic -> driver.createInputTopic(topic, new StringSerializer(), new StringSerializer()))
            .pipeInput(new TestRecord<>(key, value, headers, step.get("timestamp").asLong()));
    }

    /** Takes what the step wrote, internal topics included. */
    private void collect(int step) {
        for (String topic : new TreeSet<>(driver.producedTopicNames())) {
            ArrayNode records = topics.withArray(topic);
            var written = driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            while (!written.isEmpty()) {
                TestRecord<byte[], byte[]> record = written.readRecord();
                ArrayNode fields = records.addArray().add(step)
                    .add(hex(record.key())).add(hex(record.value())).add(record.timestamp());
                ArrayNode headers = fields.addArray();
                for (Header header : record.headers()) {
                    headers.addArray().add(header.key()).add(hex(header.value()));
                }
            }
        }
    }

    static String hex(byte[] bytes) {
        return bytes == null ? null : java.util.HexFormat.of().formatHex(bytes);
    }
}
