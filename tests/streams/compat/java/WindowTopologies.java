import java.time.Duration;

import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;

/** Windows of every kind. */
final class WindowTopologies {
    static final TimeWindows TUMBLING = TimeWindows.ofSizeWithNoGrace(Topologies.ms(100));
    static final TimeWindows TUMBLING_WITH_GRACE = TimeWindows.ofSizeAndGrace(Topologies.ms(100), Topologies.ms(50));
    static final TimeWindows HOPPING = TimeWindows.ofSizeWithNoGrace(Topologies.ms(100)).advanceBy(Topologies.ms(40));
    static final TimeWindows HOPPING_WITH_GRACE =
        TimeWindows.ofSizeAndGrace(Topologies.ms(100), Topologies.ms(50)).advanceBy(Topologies.ms(50));
    static final SlidingWindows SLIDING = SlidingWindows.ofTimeDifferenceWithNoGrace(Topologies.ms(50));
    static final SlidingWindows SLIDING_WITH_GRACE =
        SlidingWindows.ofTimeDifferenceAndGrace(Topologies.ms(50), Topologies.ms(100));
    static final SessionWindows SESSIONS = SessionWindows.ofInactivityGapWithNoGrace(Topologies.ms(50));
    static final SessionWindows SESSIONS_WITH_GRACE =
        SessionWindows.ofInactivityGapAndGrace(Topologies.ms(50), Topologies.ms(100));

    /** On window close, Kafka Streams loses windows that expire when stream time jumps; with this, none expires. */
    static final Duration LONG_RETENTION = Duration.ofDays(1);

    private WindowTopologies() {
    }

    static void define(Topologies topologies) {
        topologies.add("tumbling-count", builder -> grouped(builder)
            .windowedBy(TUMBLING).count(Topologies.windowStore("windowed")).toStream().to("out"));
        topologies.add("tumbling-count-grace", builder -> grouped(builder)
            .windowedBy(TUMBLING_WITH_GRACE).count(Topologies.windowStore("windowed")).toStream().to("out"));
        topologies.add("tumbling-reduce", builder -> grouped(builder)
            .windowedBy(TUMBLING_WITH_GRACE)
            .reduce((left, right) -> Functions.appended(left, right), Topologies.windowStore("windowed"))
            .toStream().to("out"));
        topologies.add("tumbling-aggregate", builder -> grouped(builder)
            .windowedBy(TUMBLING_WITH_GRACE)
            .aggregate(() -> "", (key, value, aggregate) -> Functions.appended(aggregate, value), Topologies.windowStore("windowed"))
            .toStream().to("out"));
        topologies.add("hopping-count", builder -> grouped(builder)
            .windowedBy(HOPPING).count(Topologies.windowStore("windowed")).toStream().to("out"));
        topologies.add("hopping-aggregate-grace", builder -> grouped(builder)
            .windowedBy(HOPPING_WITH_GRACE)
            .aggregate(() -> "", (key, value, aggregate) -> Functions.appended(aggregate, value), Topologies.windowStore("windowed"))
            .toStream().to("out"));
        topologies.add("windowed-group-by-count", builder -> StatelessTopologies.input(builder)
            .groupBy((key, value) -> Functions.first(value), Topologies.TEXTS)
            .windowedBy(TUMBLING_WITH_GRACE).count(Topologies.windowStore("windowed")).toStream().to("out"));
        topologies.add("sliding-count", builder -> grouped(builder)
            .windowedBy(SLIDING).count(Topologies.windowStore("windowed")).toStream().to("out"));
        topologies.add("sliding-aggregate-grace", builder -> grouped(builder)
            .windowedBy(SLIDING_WITH_GRACE)
            .aggregate(() -> "", (key, value, aggregate) -> Functions.appended(aggregate, value), Topologies.windowStore("windowed"))
            .toStream().to("out"));
        topologies.add("sliding-reduce-grace", builder -> grouped(builder)
            .windowedBy(SLIDING_WITH_GRACE)
            .reduce((left, right) -> Functions.plus(left, right), Topologies.windowStore("windowed"))
            .toStream().to("out"));
        topologies.add("session-count", builder -> grouped(builder)
            .windowedBy(SESSIONS).count(Topologies.sessionStore("sessions")).toStream().to("out"));
        topologies.add("session-count-grace", builder -> grouped(builder)
            .windowedBy(SESSIONS_WITH_GRACE).count(Topologies.sessionStore("sessions")).toStream().to("out"));
        topologies.add("session-reduce", builder -> grouped(builder)
            .windowedBy(SESSIONS_WITH_GRACE)
            .reduce((left, right) -> Functions.plus(left, right), Topologies.sessionStore("sessions"))
            .toStream().to("out"));
        topologies.add("session-aggregate", builder -> grouped(builder)
            .windowedBy(SESSIONS_WITH_GRACE)
            .aggregate(
                () -> "",
                (key, value, aggregate) -> Functions.appended(aggregate, value),
                (key, left, right) -> Functions.plus(left, right),
                Topologies.sessionStore("sessions"))
            .toStream().to("out"));
        topologies.add("tumbling-on-close", builder -> grouped(builder)
            .windowedBy(TUMBLING_WITH_GRACE).emitStrategy(EmitStrategy.onWindowClose())
            .count(Topologies.<Long>windowStore("windowed").withRetention(LONG_RETENTION)).toStream().to("out"));
        topologies.add("hopping-on-close", builder -> grouped(builder)
            .windowedBy(HOPPING).emitStrategy(EmitStrategy.onWindowClose())
            .aggregate(() -> "", (key, value, aggregate) -> Functions.appended(aggregate, value),
                Topologies.<String>windowStore("windowed").withRetention(LONG_RETENTION))
            .toStream().to("out"));
        topologies.add("sliding-on-close", builder -> grouped(builder)
            .windowedBy(SLIDING_WITH_GRACE).emitStrategy(EmitStrategy.onWindowClose())
            .count(Topologies.<Long>windowStore("windowed").withRetention(LONG_RETENTION)).toStream().to("out"));
        topologies.add("session-on-close", builder -> grouped(builder)
            .windowedBy(SESSIONS_WITH_GRACE).emitStrategy(EmitStrategy.onWindowClose())
            .count(Topologies.<Long>sessionStore("sessions").withRetention(LONG_RETENTION)).toStream().to("out"));
    }

    static KGroupedStream<String, String> grouped(StreamsBuilder builder) {
        return StatelessTopologies.input(builder).groupByKey(Topologies.TEXTS);
    }
}
