import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;

/** Results that are held back: until their window closes, or for a time. */
final class SuppressTopologies {
    private SuppressTopologies() {
    }

    static void define(Topologies topologies) {
        topologies.add("suppress-tumbling", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.TUMBLING).count(Topologies.windowStore("windowed"))
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
            .toStream().to("out"));
        topologies.add("suppress-hopping-grace", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.HOPPING_WITH_GRACE)
            .aggregate(() -> "", (key, value, aggregate) -> Functions.appended(aggregate, value), Topologies.windowStore("windowed"))
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
            .toStream().to("out"));
        topologies.add("suppress-sliding-grace", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.SLIDING_WITH_GRACE).count(Topologies.windowStore("windowed"))
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
            .toStream().to("out"));
        topologies.add("suppress-session-grace", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.SESSIONS_WITH_GRACE).count(Topologies.sessionStore("sessions"))
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
            .toStream().to("out"));
        topologies.add("suppress-time-limit", builder -> WindowTopologies.grouped(builder)
            .count(Topologies.store("counts"))
            .suppress(Suppressed.untilTimeLimit(Topologies.ms(60), BufferConfig.unbounded()))
            .toStream().to("out"));
        topologies.add("suppress-time-limit-zero", builder -> WindowTopologies.grouped(builder)
            .count(Topologies.store("counts"))
            .suppress(Suppressed.untilTimeLimit(Topologies.ms(0), BufferConfig.unbounded()))
            .toStream().to("out"));
        topologies.add("suppress-time-limit-windowed", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.TUMBLING_WITH_GRACE).count(Topologies.windowStore("windowed"))
            .suppress(Suppressed.untilTimeLimit(Topologies.ms(30), BufferConfig.unbounded()))
            .toStream().to("out"));
        topologies.add("suppress-source-table", builder -> builder
            .<String, String>table("in", Topologies.store("table"))
            .suppress(Suppressed.untilTimeLimit(Topologies.ms(60), BufferConfig.unbounded()))
            .toStream().to("out"));
        topologies.add("suppress-max-records", builder -> builder
            .<String, String>table("in", Topologies.store("table"))
            .suppress(Suppressed.untilTimeLimit(Topologies.ms(200), BufferConfig.maxRecords(1)))
            .toStream().to("out"));
        topologies.add("suppress-max-bytes", builder -> builder
            .<String, String>table("in", Topologies.store("table"))
            .suppress(Suppressed.untilTimeLimit(Topologies.ms(200), BufferConfig.maxBytes(70)))
            .toStream().to("out"));
        topologies.add("suppress-group-by", builder -> builder
            .<String, String>table("in", Topologies.store("table"))
            .suppress(Suppressed.untilTimeLimit(Topologies.ms(60), BufferConfig.unbounded()))
            .groupBy((key, value) -> KeyValue.pair(Functions.first(value), value), Topologies.TEXTS)
            .reduce(
                (total, value) -> Functions.plus(total, value),
                (total, value) -> Functions.removed(total, value),
                Topologies.store("reduced"))
            .toStream().to("out"));
    }
}
