import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/** The programs in Kafka Streams: PROGRAM BOOTSTRAP APPLICATION GUARANTEE FOLDER. Every update is emitted. */
public final class KafkaStreamsPrograms {
    public static void main(String[] arguments) throws InterruptedException {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[1]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[2]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments[3]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put("auto.offset.reset", "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        switch (arguments[0]) {
            case "word_count" -> wordCount(builder);
            case "key_count" -> keyCount(builder);
            case "windowed_count" -> windowedCount(builder);
            case "table_join" -> tableJoin(builder);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            // Otherwise a restarted program waits until the session of the stopped one has expired.
            streams.close(CloseOptions.timeout(Duration.ofSeconds(10))
                .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
            ended.countDown();
        }));
        streams.start();
        ended.await();
    }

    private static void wordCount(StreamsBuilder builder) {
        builder.<String, String>stream("lines")
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(Materialized.as("counts"))
            .toStream()
            .to("results", Produced.with(Serdes.String(), Serdes.Long()));
    }

    private static void keyCount(StreamsBuilder builder) {
        builder.<String, String>stream("lines")
            .groupByKey()
            .count(Materialized.as("counts"))
            .toStream()
            .to("results", Produced.with(Serdes.String(), Serdes.Long()));
    }

    private static void windowedCount(StreamsBuilder builder) {
        Duration size = Duration.ofSeconds(10);
        builder.<String, String>stream("lines")
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeWithNoGrace(size))
            .count(Materialized.as("counts"))
            .toStream()
            .to("results", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, size.toMillis()), Serdes.Long()));
    }

    private static void tableJoin(StreamsBuilder builder) {
        KTable<String, String> names = builder.table("names", Materialized.as("names"));
        builder.<String, String>stream("lines").join(names, (line, name) -> name + " " + line).to("results");
    }
}
