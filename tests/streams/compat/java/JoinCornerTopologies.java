import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

/** Joins at the edges: windows of no size, new keys that are null, tables without stores, windowed tables. */
final class JoinCornerTopologies {
    private JoinCornerTopologies() {
    }

    static void define(Topologies topologies) {
        JoinWindows sameTime = JoinWindows.ofTimeDifferenceWithNoGrace(Topologies.ms(0));
        JoinWindows soon = JoinWindows.ofTimeDifferenceWithNoGrace(Topologies.ms(50)).before(Topologies.ms(0));
        topologies.add("stream-outer-join-same-time", builder -> JoinTopologies.left(builder)
            .outerJoin(JoinTopologies.right(builder), Functions::plus, sameTime).to("out"));
        topologies.add("stream-outer-join-same-time-grace", builder -> JoinTopologies.left(builder)
            .outerJoin(JoinTopologies.right(builder), Functions::plus,
                JoinWindows.ofTimeDifferenceAndGrace(Topologies.ms(0), Topologies.ms(20))).to("out"));
        topologies.add("stream-outer-join-soon", builder -> JoinTopologies.left(builder)
            .outerJoin(JoinTopologies.right(builder), Functions::plus, soon).to("out"));
        topologies.add("stream-left-join-later", builder -> JoinTopologies.left(builder)
            .leftJoin(JoinTopologies.right(builder), Functions::plus, soon.before(Topologies.ms(-10))).to("out"));
        topologies.add("stream-join-new-keys", builder -> referring(JoinTopologies.left(builder))
            .join(referring(JoinTopologies.right(builder)), Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE).to("out"));
        topologies.add("stream-left-join-new-keys", builder -> referring(JoinTopologies.left(builder))
            .leftJoin(referring(JoinTopologies.right(builder)), Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE).to("out"));
        topologies.add("stream-outer-join-new-keys", builder -> referring(JoinTopologies.left(builder))
            .outerJoin(referring(JoinTopologies.right(builder)), Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE).to("out"));
        topologies.add("self-outer-join", builder -> {
            KStream<String, String> input = StatelessTopologies.input(builder);
            input.outerJoin(input.filter((key, value) -> Functions.isLong(value)), Functions::plus,
                JoinTopologies.WINDOWS_WITH_GRACE).to("out");
        });
        topologies.add("table-left-join-without-stores", builder -> builder.<String, String>table("left")
            .leftJoin(builder.<String, String>table("right"), Functions::plus).toStream().to("out"));
        topologies.add("table-outer-join-filtered", builder -> builder.<String, String>table("left")
            .filter((key, value) -> Functions.isLong(value))
            .outerJoin(builder.<String, String>table("right").filterNot((key, value) -> Functions.isLong(value)), Functions::plus)
            .toStream().to("out"));
        topologies.add("table-left-join-filtered-after", builder -> builder.<String, String>table("left")
            .leftJoin(builder.<String, String>table("right"), Functions::plus)
            .filter((key, value) -> value.length() > 3)
            .toStream().to("out"));
        topologies.add("foreign-key-join-filtered", builder -> builder.<String, String>table("left")
            .filter((key, value) -> Functions.isLong(value))
            .join(builder.<String, String>table("right").mapValues(value -> Functions.plus(value, "m")),
                value -> value.substring(1, 2), Functions::plus)
            .toStream().to("out"));
        topologies.add("foreign-key-left-join-of-join", builder -> builder.<String, String>table("left")
            .outerJoin(builder.<String, String>table("right"), Functions::plus)
            .leftJoin(builder.<String, String>table("third"), value -> Functions.reference(value), Functions::plus)
            .toStream().to("out"));
        topologies.add("foreign-key-join-itself", builder -> {
            KTable<String, String> table = TableTopologies.input(builder);
            table.leftJoin(table, value -> Functions.reference(value), Functions::plus).toStream().to("out");
        });
        topologies.add("windowed-table-outer-join", builder -> windowed(JoinTopologies.left(builder), "left-counts")
            .outerJoin(windowed(JoinTopologies.right(builder), "right-counts"), Functions::plus)
            .toStream((key, value) -> key.key() + "@" + key.window().start()).to("out"));
    }

    private static KStream<String, String> referring(KStream<String, String> stream) {
        return stream.selectKey((key, value) -> Functions.reference(value));
    }

    private static KTable<Windowed<String>, Long> windowed(KStream<String, String> stream, String store) {
        return stream.groupByKey(Topologies.TEXTS)
            .windowedBy(TimeWindows.ofSizeAndGrace(Topologies.ms(50), Topologies.ms(100)))
            .count(Topologies.<Long>windowStore(store).withValueSerde(Serdes.Long()));
    }
}
