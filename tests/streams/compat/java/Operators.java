import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.Stores;

/**
 * Operators from streams of text to streams of text, so that each can follow each. The name "chain: a, b" is the topology
 * in which the records of topic "in" pass the operators a and b. The number n of an operator in its chain is part of the
 * names of its stores and of its own topic "right-n".
 */
final class Operators {
    private interface Operator {
        KStream<String, String> apply(Step step, KStream<String, String> stream);
    }

    /** The place of an operator in a topology. */
    private record Step(StreamsBuilder builder, int number) {
        String named(String name) {
            return name + "-" + number;
        }

        KStream<String, String> rightStream() {
            return builder.stream(named("right"));
        }

        KTable<String, String> rightTable() {
            return builder.table(named("right"), Topologies.store(named("right-store")));
        }

        KGroupedStream<String, String> grouped(KStream<String, String> stream) {
            return stream.groupByKey(Topologies.TEXTS);
        }

        KTable<String, String> asTable(KStream<String, String> stream) {
            return stream.toTable(Topologies.store(named("table")));
        }
    }

    static final String PREFIX = "chain: ";
    private static final Map<String, Operator> OPERATORS = new LinkedHashMap<>();

    private Operators() {
    }

    static void build(String chain, StreamsBuilder builder) {
        KStream<String, String> stream = StatelessTopologies.input(builder);
        int number = 0;
        for (String name : chain.substring(PREFIX.length()).split(", ")) {
            stream = OPERATORS.get(name).apply(new Step(builder, ++number), stream);
        }
        stream.to("out");
    }

    static {
        stateless();
        aggregates();
        tables();
        joins();
        processors();
    }

    private static void stateless() {
        OPERATORS.put("map", (step, stream) -> stream
            .map((key, value) -> KeyValue.pair(Functions.first(value), Functions.plus(key, value))));
        OPERATORS.put("map-values", (step, stream) -> stream.mapValues(value -> Functions.plus(value, "m")));
        OPERATORS.put("flat-map", (step, stream) -> stream.flatMap((key, value) -> Functions.letters(value).stream()
            .limit(2).map(letter -> KeyValue.pair(letter, key)).collect(Collectors.toList())));
        OPERATORS.put("flat-map-values", (step, stream) -> stream.flatMapValues(value ->
            Functions.letters(value).stream().limit(2).collect(Collectors.toList())));
        OPERATORS.put("filter", (step, stream) -> stream.filter((key, value) -> Functions.isLong(value)));
        OPERATORS.put("select-key", (step, stream) -> stream.selectKey((key, value) -> Functions.reference(value)));
        OPERATORS.put("merge", (step, stream) -> stream.merge(step.rightStream()));
        OPERATORS.put("repartition", (step, stream) -> stream.repartition(Repartitioned.as(step.named("moved"))));
    }

    private static void aggregates() {
        OPERATORS.put("count", (step, stream) -> step.grouped(stream)
            .count(Topologies.store(step.named("counts"))).toStream().mapValues(count -> Functions.optional(count)));
        OPERATORS.put("group-by-reduce", (step, stream) -> stream
            .groupBy((key, value) -> Functions.first(value), Topologies.TEXTS)
            .reduce((one, other) -> Functions.plus(one, other), Topologies.store(step.named("reduced"))).toStream());
        OPERATORS.put("aggregate", (step, stream) -> step.grouped(stream)
            .aggregate(() -> "", (key, value, aggregate) -> Functions.appended(aggregate, value),
                Topologies.store(step.named("aggregated")))
            .toStream());
        OPERATORS.put("tumbling-count", (step, stream) -> texts(step.grouped(stream)
            .windowedBy(WindowTopologies.TUMBLING_WITH_GRACE).count(Topologies.windowStore(step.named("windows")))));
        OPERATORS.put("hopping-reduce", (step, stream) -> texts(step.grouped(stream)
            .windowedBy(WindowTopologies.HOPPING_WITH_GRACE)
            .reduce((one, other) -> Functions.plus(one, other), Topologies.windowStore(step.named("windows")))));
        OPERATORS.put("sliding-count", (step, stream) -> texts(step.grouped(stream)
            .windowedBy(WindowTopologies.SLIDING_WITH_GRACE).count(Topologies.windowStore(step.named("windows")))));
        OPERATORS.put("session-count", (step, stream) -> texts(step.grouped(stream)
            .windowedBy(WindowTopologies.SESSIONS_WITH_GRACE).count(Topologies.sessionStore(step.named("sessions")))));
        OPERATORS.put("final-tumbling-count", (step, stream) -> texts(step.grouped(stream)
            .windowedBy(WindowTopologies.TUMBLING_WITH_GRACE).emitStrategy(EmitStrategy.onWindowClose())
            .count(Topologies.<Long>windowStore(step.named("windows")).withRetention(WindowTopologies.LONG_RETENTION))));
        OPERATORS.put("suppressed-tumbling-count", (step, stream) -> texts(step.grouped(stream)
            .windowedBy(WindowTopologies.TUMBLING_WITH_GRACE).count(Topologies.windowStore(step.named("windows")))
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))));
        OPERATORS.put("suppressed-reduce", (step, stream) -> step.grouped(stream)
            .reduce((one, other) -> Functions.plus(one, other), Topologies.store(step.named("reduced")))
            .suppress(Suppressed.untilTimeLimit(Topologies.ms(60), BufferConfig.unbounded()))
            .toStream());
    }

    private static void tables() {
        OPERATORS.put("table", (step, stream) -> step.asTable(stream).toStream());
        OPERATORS.put("table-filter", (step, stream) -> step.asTable(stream)
            .filter((key, value) -> Functions.isLong(value)).toStream());
        OPERATORS.put("table-map-values", (step, stream) -> step.asTable(stream)
            .mapValues(value -> Functions.plus(value, "t"), Topologies.store(step.named("mapped"))).toStream());
        OPERATORS.put("table-group", (step, stream) -> step.asTable(stream)
            .groupBy((key, value) -> KeyValue.pair(Functions.first(value), value), Topologies.TEXTS)
            .aggregate(
                () -> "",
                (key, value, aggregate) -> Functions.plus(aggregate, value),
                (key, value, aggregate) -> Functions.removed(aggregate, value),
                Topologies.store(step.named("grouped")))
            .toStream());
        OPERATORS.put("table-join", (step, stream) -> step.asTable(stream)
            .join(step.rightTable(), Functions::plus).toStream());
        OPERATORS.put("table-outer-join", (step, stream) -> step.asTable(stream)
            .outerJoin(step.rightTable(), Functions::plus).toStream());
        OPERATORS.put("foreign-key-left-join", (step, stream) -> step.asTable(stream)
            .leftJoin(step.rightTable(), value -> Functions.reference(value), Functions::plus).toStream());
    }

    private static void joins() {
        OPERATORS.put("stream-join", (step, stream) -> stream
            .join(step.rightStream(), Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE));
        OPERATORS.put("stream-left-join", (step, stream) -> stream
            .leftJoin(step.rightStream(), Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE));
        OPERATORS.put("stream-outer-join", (step, stream) -> stream
            .outerJoin(step.rightStream(), Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE));
        OPERATORS.put("self-join", (step, stream) -> stream
            .join(stream, Functions::plus, JoinTopologies.WINDOWS_WITH_GRACE));
        OPERATORS.put("stream-table-join", (step, stream) -> stream.join(step.rightTable(), Functions::plus));
        OPERATORS.put("stream-table-left-join", (step, stream) -> stream.leftJoin(step.rightTable(), Functions::plus));
        OPERATORS.put("stream-global-table-join", (step, stream) -> stream.join(
            step.builder().<String, String>globalTable(step.named("right"), Topologies.store(step.named("global"))),
            (key, value) -> Functions.first(value), Functions::plus));
    }

    private static void processors() {
        OPERATORS.put("process", (step, stream) -> {
            String store = addStore(step);
            return stream.process(() -> new ProcessorTopologies.Previous(store), store);
        });
        OPERATORS.put("process-values", (step, stream) -> {
            String store = addStore(step);
            return stream.processValues(() -> new ProcessorTopologies.PreviousValue(store), store);
        });
    }

    private static String addStore(Step step) {
        String store = step.named("previous");
        step.builder().addStateStore(Stores.keyValueStoreBuilder(
            Stores.inMemoryKeyValueStore(store), Serdes.String(), Serdes.String()));
        return store;
    }

    /** Windows as texts: their keys with the starts of the windows. */
    private static <V> KStream<String, String> texts(KTable<Windowed<String>, V> windows) {
        return windows.toStream((window, value) -> window.key() + "@" + window.window().start())
            .mapValues(value -> Functions.optional(value));
    }
}
