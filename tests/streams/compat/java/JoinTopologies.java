import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;

/** Streams joined with streams, tables and global tables. */
final class JoinTopologies {
    static final JoinWindows WINDOWS = JoinWindows.ofTimeDifferenceWithNoGrace(Topologies.ms(50));
    static final JoinWindows WINDOWS_WITH_GRACE = JoinWindows.ofTimeDifferenceAndGrace(Topologies.ms(50), Topologies.ms(60));

    private JoinTopologies() {
    }

    static void define(Topologies topologies) {
        topologies.add("stream-join", builder -> left(builder).join(right(builder), Functions::plus, WINDOWS).to("out"));
        topologies.add("stream-left-join", builder -> left(builder).leftJoin(right(builder), Functions::plus, WINDOWS).to("out"));
        topologies.add("stream-outer-join", builder -> left(builder).outerJoin(right(builder), Functions::plus, WINDOWS).to("out"));
        topologies.add("stream-join-grace", builder -> left(builder)
            .join(right(builder), Functions::plus, WINDOWS_WITH_GRACE).to("out"));
        topologies.add("stream-left-join-grace", builder -> left(builder)
            .leftJoin(right(builder), Functions::plus, WINDOWS_WITH_GRACE).to("out"));
        topologies.add("stream-outer-join-grace", builder -> left(builder)
            .outerJoin(right(builder), Functions::plus, WINDOWS_WITH_GRACE).to("out"));
        topologies.add("stream-join-after", builder -> left(builder)
            .join(right(builder), Functions::plus, WINDOWS_WITH_GRACE.before(Topologies.ms(0))).to("out"));
        topologies.add("stream-left-join-after", builder -> left(builder)
            .leftJoin(right(builder), Functions::plus, WINDOWS_WITH_GRACE.before(Topologies.ms(10))).to("out"));
        topologies.add("stream-outer-join-before", builder -> left(builder)
            .outerJoin(right(builder), Functions::plus, WINDOWS_WITH_GRACE.after(Topologies.ms(0))).to("out"));
        topologies.add("stream-outer-join-in-the-past", builder -> left(builder)
            .outerJoin(right(builder), Functions::plus, WINDOWS_WITH_GRACE.after(Topologies.ms(-20))).to("out"));
        topologies.add("stream-join-new-key", builder -> left(builder)
            .selectKey((key, value) -> Functions.first(value))
            .join(right(builder), Functions::plus, WINDOWS_WITH_GRACE).to("out"));
        topologies.add("self-join", builder -> {
            KStream<String, String> input = StatelessTopologies.input(builder);
            input.join(input, Functions::plus, WINDOWS_WITH_GRACE).to("out");
        });
        topologies.add("stream-table-join", builder -> left(builder).join(table(builder), Functions::plus).to("out"));
        topologies.add("stream-table-left-join", builder -> left(builder).leftJoin(table(builder), Functions::plus).to("out"));
        topologies.add("stream-table-join-with-key", builder -> left(builder)
            .join(table(builder), (String key, String value, String other) -> Functions.plus(key, Functions.plus(value, other)))
            .to("out"));
        topologies.add("stream-table-join-new-key", builder -> left(builder)
            .selectKey((key, value) -> Functions.first(value))
            .join(table(builder), Functions::plus).to("out"));
        topologies.add("stream-table-left-join-new-key", builder -> left(builder)
            .selectKey((key, value) -> Functions.reference(value))
            .leftJoin(table(builder), Functions::plus).to("out"));
        topologies.add("stream-table-join-filtered", builder -> left(builder)
            .join(table(builder).filter((key, value) -> Functions.isLong(value)), Functions::plus).to("out"));
        topologies.add("stream-global-table-join", builder -> left(builder)
            .join(global(builder), (key, value) -> Functions.reference(value), Functions::plus).to("out"));
        topologies.add("stream-global-table-left-join", builder -> left(builder)
            .leftJoin(global(builder), (key, value) -> Functions.reference(value), Functions::plus).to("out"));
    }

    static KStream<String, String> left(StreamsBuilder builder) {
        return builder.stream("left");
    }

    static KStream<String, String> right(StreamsBuilder builder) {
        return builder.stream("right");
    }

    static KTable<String, String> table(StreamsBuilder builder) {
        return builder.table("right", Topologies.store("table"));
    }

    static GlobalKTable<String, String> global(StreamsBuilder builder) {
        return builder.globalTable("right", Topologies.store("global"));
    }
}
