import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;

/** Operators after one another, as programs have them. */
final class ChainTopologies {
    private ChainTopologies() {
    }

    static void define(Topologies topologies) {
        topologies.add("count-stream-of-counts", builder -> WindowTopologies.grouped(builder)
            .count(Topologies.store("counts"))
            .toStream()
            .groupBy((key, count) -> Functions.text(count), Topologies.LONGS)
            .count(Topologies.store("counts-of-counts"))
            .toStream().to("out"));
        topologies.add("count-table-of-counts", builder -> WindowTopologies.grouped(builder)
            .count(Topologies.store("counts"))
            .groupBy((key, count) -> KeyValue.pair(Functions.text(count), count), Topologies.LONGS)
            .count(Topologies.store("counts-of-counts"))
            .toStream().to("out"));
        topologies.add("count-group-aggregate", builder -> WindowTopologies.grouped(builder)
            .count(Topologies.store("counts"))
            .groupBy((key, count) -> KeyValue.pair(Functions.first(key), count), Topologies.LONGS)
            .aggregate(() -> 0L, (key, count, sum) -> sum + count, (key, count, sum) -> sum - count,
                Topologies.<Long>store("sums").withValueSerde(Serdes.Long()))
            .toStream().to("out"));
        topologies.add("window-suppress-join", builder -> JoinTopologies.left(builder)
            .groupByKey(Topologies.TEXTS)
            .windowedBy(WindowTopologies.TUMBLING_WITH_GRACE)
            .count(Topologies.windowStore("windowed"))
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
            .toStream()
            .map((window, count) -> KeyValue.pair(window.key(), Functions.plus(window.window().start(), count)))
            .join(JoinTopologies.table(builder), Functions::plus)
            .to("out"));
        topologies.add("window-then-group-by-window", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.TUMBLING_WITH_GRACE)
            .count(Topologies.windowStore("windowed"))
            .toStream()
            .map((window, count) -> KeyValue.pair(Functions.text(window.window().start()), Functions.plus(window.key(), count)))
            .groupByKey()
            .reduce((left, right) -> Functions.plus(left, right), Topologies.store("by-window"))
            .toStream().to("out"));
        topologies.add("window-table-group-by-window", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.TUMBLING_WITH_GRACE)
            .count(Topologies.windowStore("windowed"))
            .groupBy((window, count) -> KeyValue.pair(Functions.text(window.window().start()), count), Topologies.LONGS)
            .aggregate(() -> 0L, (key, count, sum) -> sum + count, (key, count, sum) -> sum - count,
                Topologies.<Long>store("sums").withValueSerde(Serdes.Long()))
            .toStream().to("out"));
        topologies.add("sliding-table-group-by-key", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.SLIDING_WITH_GRACE)
            .count(Topologies.windowStore("windowed"))
            .groupBy((window, count) -> KeyValue.pair(window.key(), count), Topologies.LONGS)
            .aggregate(() -> 0L, (key, count, sum) -> sum + count, (key, count, sum) -> sum - count,
                Topologies.<Long>store("sums").withValueSerde(Serdes.Long()))
            .toStream().to("out"));
        topologies.add("session-table-group-by-key", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.SESSIONS_WITH_GRACE)
            .count(Topologies.<Long>sessionStore("sessions").withRetention(WindowTopologies.LONG_RETENTION))
            .groupBy((window, count) -> KeyValue.pair(window.key(), count), Topologies.LONGS)
            .aggregate(() -> 0L, (key, count, sum) -> sum + count, (key, count, sum) -> sum - count,
                Topologies.<Long>store("sums").withValueSerde(Serdes.Long()))
            .toStream().to("out"));
        topologies.add("window-in-window", builder -> WindowTopologies.grouped(builder)
            .windowedBy(TimeWindows.ofSizeAndGrace(Topologies.ms(20), Topologies.ms(50)))
            .count(Topologies.windowStore("small"))
            .toStream()
            .selectKey((window, count) -> window.key())
            .groupByKey(Topologies.LONGS)
            .windowedBy(WindowTopologies.TUMBLING_WITH_GRACE)
            .reduce((left, right) -> left + right, Topologies.<Long>windowStore("large").withValueSerde(Serdes.Long()))
            .toStream().to("out"));
        topologies.add("session-suppress-count", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.SESSIONS_WITH_GRACE)
            .count(Topologies.sessionStore("sessions"))
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
            .toStream()
            .selectKey((session, count) -> session.key())
            .groupByKey(Topologies.LONGS)
            .count(Topologies.store("counts"))
            .toStream().to("out"));
        topologies.add("window-filter", builder -> WindowTopologies.grouped(builder)
            .windowedBy(WindowTopologies.HOPPING_WITH_GRACE)
            .count(Topologies.windowStore("windowed"))
            .filter((window, count) -> count > 1)
            .mapValues(count -> Functions.plus("n", count))
            .toStream()
            .map((window, text) -> KeyValue.pair(window.key(), text))
            .to("out"));
        topologies.add("join-then-window", builder -> JoinTopologies.left(builder)
            .join(JoinTopologies.right(builder), Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE)
            .groupByKey(Topologies.TEXTS)
            .windowedBy(WindowTopologies.TUMBLING_WITH_GRACE)
            .count(Topologies.windowStore("windowed"))
            .toStream().to("out"));
        topologies.add("outer-join-then-reduce", builder -> JoinTopologies.left(builder)
            .outerJoin(JoinTopologies.right(builder), Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE)
            .groupByKey()
            .reduce((left, right) -> left + "," + right, Topologies.store("reduced"))
            .toStream().to("out"));
        topologies.add("stream-joins-its-count", builder -> {
            KStream<String, String> input = StatelessTopologies.input(builder);
            KTable<String, Long> counts = input.groupByKey().count(Topologies.store("counts"));
            input.join(counts, (value, count) -> Functions.plus(value, count)).to("out");
        });
        topologies.add("merge-count-filter", builder -> JoinTopologies.left(builder)
            .merge(JoinTopologies.right(builder))
            .groupByKey()
            .count(Topologies.store("counts"))
            .filter((key, count) -> count % 3 != 0)
            .toStream().to("out"));
        topologies.add("count-joins-table", builder -> {
            KTable<String, Long> counts = JoinTopologies.left(builder).groupByKey().count(Topologies.store("counts"));
            counts.leftJoin(TableTopologies.right(builder), (count, value) -> Functions.plus(count, value))
                .toStream().to("out");
        });
        topologies.add("three-tables", builder -> TableTopologies.left(builder)
            .outerJoin(TableTopologies.right(builder), Functions::plus)
            .leftJoin(TableTopologies.input(builder), Functions::plus)
            .toStream().to("out"));
        topologies.add("table-join-group-aggregate", builder -> TableTopologies.left(builder)
            .outerJoin(TableTopologies.right(builder), Functions::plus)
            .groupBy((key, value) -> KeyValue.pair(Functions.first(value), value), Topologies.TEXTS)
            .aggregate(
                () -> "",
                (key, value, aggregate) -> Functions.plus(aggregate, value),
                (key, value, aggregate) -> Functions.removed(aggregate, value),
                Topologies.store("grouped"))
            .toStream().to("out"));
        topologies.add("to-table-join", builder -> JoinTopologies.left(builder)
            .mapValues(value -> value == null ? null : value.toUpperCase())
            .toTable(Topologies.store("upper"))
            .join(TableTopologies.right(builder), Functions::plus)
            .toStream().to("out"));
        topologies.add("split-and-merge", builder -> {
            KStream<String, String> input = StatelessTopologies.input(builder);
            KStream<String, String> longs = input.filter((key, value) -> Functions.isLong(value));
            KStream<String, String> others = input.filterNot((key, value) -> Functions.isLong(value))
                .mapValues(value -> Functions.plus("short", value));
            longs.merge(others).groupByKey().count(Topologies.store("counts")).toStream().to("out");
        });
        topologies.add("join-of-joins", builder -> JoinTopologies.left(builder)
            .join(JoinTopologies.right(builder), Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE)
            .leftJoin(builder.<String, String>stream("in"), Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE)
            .to("out"));
        topologies.add("enrich-then-window", builder -> JoinTopologies.left(builder)
            .leftJoin(JoinTopologies.table(builder), Functions::plus)
            .groupBy((key, value) -> Functions.first(value), Topologies.TEXTS)
            .windowedBy(WindowTopologies.SLIDING_WITH_GRACE)
            .count(Topologies.windowStore("windowed"))
            .toStream().to("out"));
    }
}
