import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a group with a thread, which polls and between two polls does what it is asked. */
final class PollingConsumer implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Map<String, Class<?>> ASSIGNORS = Map.of(
        "range", RangeAssignor.class,
        "roundrobin", RoundRobinAssignor.class,
        "sticky", StickyAssignor.class,
        "cooperative-sticky", CooperativeStickyAssignor.class);

    private final KafkaConsumer<String, String> consumer;
    private final BlockingQueue<Runnable> asked = new LinkedBlockingQueue<>();
    private final Thread thread = new Thread(this::run);
    private final List<List<Object>> records = new ArrayList<>();
    private volatile Set<TopicPartition> assignment = Set.of();
    private volatile int rebalances;
    private volatile String error;
    private boolean closed; // of the thread

    PollingConsumer(String bootstrap, JsonNode options) {
        consumer = new KafkaConsumer<>(settings(bootstrap, options), new StringDeserializer(), new StringDeserializer());
        if (options.get("pattern").isNull()) {
            List<String> topics = new ArrayList<>();
            options.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics, this);
        } else if (options.get("protocol").asText().equals("consumer")) {
            consumer.subscribe(new SubscriptionPattern(options.get("pattern").asText()), this);
        } else {
            consumer.subscribe(Pattern.compile(options.get("pattern").asText()), this);
        }
        thread.setDaemon(true);
        thread.start();
    }

    static Map<String, Object> settings(String bootstrap, JsonNode options) {
        boolean classic = options.get("protocol").asText().equals("classic");
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", options.get("group").asText());
        settings.put("group.protocol", options.get("protocol").asText());
        settings.put("auto.offset.reset", options.get("reset").asText());
        settings.put("enable.auto.commit", options.get("auto_commit").asBoolean());
        settings.put("auto.commit.interval.ms", options.get("auto_commit_interval_ms").asInt());
        settings.put("isolation.level", options.get("isolation").asText());
        settings.put("metadata.max.age.ms", options.get("metadata_max_age_ms").asInt());
        settings.put("allow.auto.create.topics", false);
        if (classic) {
            settings.put("session.timeout.ms", options.get("session_timeout_ms").asInt());
            settings.put("heartbeat.interval.ms", options.get("heartbeat_interval_ms").asInt());
        }
        if (!options.get("assignor").isNull()) {
            String assignor = options.get("assignor").asText();
            settings.put(
                classic ? "partition.assignment.strategy" : "group.remote.assignor",
                classic ? ASSIGNORS.get(assignor).getName() : assignor);
        }
        if (!options.get("instance_id").isNull()) {
            settings.put("group.instance.id", options.get("instance_id").asText());
        }
        return settings;
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        rebalances++;
    }

    Map<String, Object> look(int after) {
        Map<String, Object> seen = new HashMap<>();
        seen.put("assignment", assignment.stream().map(at -> List.of(at.topic(), at.partition())).toList());
        seen.put("rebalances", rebalances);
        seen.put("error", error);
        synchronized (records) {
            seen.put("records", List.copyOf(records.subList(after, records.size())));
        }
        return seen;
    }

    Object commit(JsonNode offsets, boolean wait) throws Exception {
        return ask(() -> {
            if (offsets.isNull() && wait) {
                consumer.commitSync();
            } else if (offsets.isNull()) {
                consumer.commitAsync();
            } else if (wait) {
                consumer.commitSync(offsets(offsets));
            } else {
                consumer.commitAsync(offsets(offsets), null);
            }
            return null;
        });
    }

    Object committed(JsonNode partitions) throws Exception {
        return ask(() -> {
            List<Object> found = new ArrayList<>();
            consumer.committed(Set.copyOf(partitions(partitions))).forEach((at, offset) -> {
                if (offset != null) {
                    found.add(List.of(at.topic(), at.partition(), offset.offset()));
                }
            });
            return found;
        });
    }

    Object seek(TopicPartition partition, long offset) throws Exception {
        return ask(() -> {
            consumer.seek(partition, offset);
            return null;
        });
    }

    Object close() throws Exception {
        ask(() -> {
            closed = true;
            consumer.close();
            return null;
        });
        thread.join();
        return null;
    }

    static List<TopicPartition> partitions(JsonNode rows) {
        List<TopicPartition> partitions = new ArrayList<>();
        rows.forEach(row -> partitions.add(new TopicPartition(row.get(0).asText(), row.get(1).asInt())));
        return partitions;
    }

    static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode rows) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        rows.forEach(row -> offsets.put(
            new TopicPartition(row.get(0).asText(), row.get(1).asInt()),
            new OffsetAndMetadata(row.get(2).asLong(), row.get(3).asText())));
        return offsets;
    }

    private Object ask(Callable<Object> call) throws Exception {
        CompletableFuture<Object> outcome = new CompletableFuture<>();
        asked.add(() -> {
            try {
                outcome.complete(call.call());
            } catch (Exception failure) {
                outcome.completeExceptionally(failure);
            }
        });
        return outcome.get(30, TimeUnit.SECONDS);
    }

    private void run() {
        try {
            while (!closed) {
                Runnable next = error == null ? asked.poll() : asked.take();
                if (next != null) {
                    next.run();
                } else {
                    poll();
                }
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private void poll() {
        try {
            for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                synchronized (records) {
                    records.add(List.of(record.topic(), record.partition(), record.offset(), record.value()));
                }
            }
            assignment = Set.copyOf(consumer.assignment());
        } catch (Exception failure) { // the end of this consumer, reported by the next look at it
            error = ErrorNames.of(failure);
            assignment = Set.of();
        }
    }
}
