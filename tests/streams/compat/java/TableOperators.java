import java.util.LinkedHashMap;
import java.util.Map;

import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;

/**
 * Operators from tables of text to tables of text, so that each can follow each. The name "tables: a, b" is the topology in
 * which the table of topic "in" passes the operators a and b. The number n of an operator in its chain is part of the names
 * of its stores and of its own topic "right-n".
 */
final class TableOperators {
    private interface Operator {
        KTable<String, String> apply(Step step, KTable<String, String> table);
    }

    /** The place of an operator in a topology. */
    private record Step(StreamsBuilder builder, int number) {
        String named(String name) {
            return name + "-" + number;
        }

        KTable<String, String> right() {
            return builder.table(named("right"));
        }

        KGroupedTable<String, String> grouped(KTable<String, String> table) {
            return table.groupBy((key, value) -> KeyValue.pair(Functions.first(value), value), Topologies.TEXTS);
        }
    }

    static final String PREFIX = "tables: ";
    private static final Map<String, Operator> OPERATORS = new LinkedHashMap<>();

    private TableOperators() {
    }

    static void build(String chain, StreamsBuilder builder) {
        KTable<String, String> table = builder.table("in");
        int number = 0;
        for (String name : chain.substring(PREFIX.length()).split(", ")) {
            table = OPERATORS.get(name).apply(new Step(builder, ++number), table);
        }
        table.toStream().to("out");
    }

    static {
        OPERATORS.put("filter", (step, table) -> table.filter((key, value) -> Functions.isLong(value)));
        OPERATORS.put("filter-store", (step, table) -> table
            .filter((key, value) -> Functions.isLong(value), Topologies.store(step.named("filtered"))));
        OPERATORS.put("filter-not", (step, table) -> table.filterNot((key, value) -> Functions.isLong(value)));
        OPERATORS.put("map-values", (step, table) -> table.mapValues(value -> Functions.plus(value, "m")));
        OPERATORS.put("map-values-store", (step, table) -> table
            .mapValues(value -> Functions.plus(value, "m"), Topologies.store(step.named("mapped"))));
        OPERATORS.put("map-values-to-null", (step, table) -> table.mapValues(value -> Functions.reference(value)));
        OPERATORS.put("transform-values", (step, table) -> table.transformValues(TableTopologies.WithKey::new));
        OPERATORS.put("transform-values-store", (step, table) -> table
            .transformValues(TableTopologies.WithKey::new, Topologies.store(step.named("transformed"))));
        OPERATORS.put("join", (step, table) -> table.join(step.right(), Functions::plus));
        OPERATORS.put("join-store", (step, table) -> table
            .join(step.right(), Functions::plus, Topologies.store(step.named("joined"))));
        OPERATORS.put("left-join", (step, table) -> table.leftJoin(step.right(), Functions::plus));
        OPERATORS.put("outer-join", (step, table) -> table.outerJoin(step.right(), Functions::plus));
        OPERATORS.put("right-of-join", (step, table) -> step.right()
            .leftJoin(table, (value, other) -> Functions.plus(value, other)));
        OPERATORS.put("self-join", (step, table) -> table
            .join(table.mapValues(value -> Functions.first(value)), Functions::plus));
        OPERATORS.put("foreign-key-join", (step, table) -> table
            .join(step.right(), value -> Functions.reference(value), Functions::plus));
        OPERATORS.put("foreign-key-left-join", (step, table) -> table
            .leftJoin(step.right(), value -> Functions.reference(value), Functions::plus));
        OPERATORS.put("right-of-foreign-key-join", (step, table) -> step.right()
            .join(table, value -> Functions.reference(value), Functions::plus));
        OPERATORS.put("group-count", (step, table) -> step.grouped(table)
            .count(Topologies.store(step.named("counts"))).mapValues(count -> Functions.plus(count, "n")));
        OPERATORS.put("group-reduce", (step, table) -> step.grouped(table)
            .reduce(
                (aggregate, value) -> Functions.plus(aggregate, value),
                (aggregate, value) -> Functions.removed(aggregate, value)));
        OPERATORS.put("group-aggregate", (step, table) -> step.grouped(table)
            .aggregate(
                () -> "",
                (key, value, aggregate) -> Functions.plus(aggregate, value),
                (key, value, aggregate) -> Functions.removed(aggregate, value)));
        OPERATORS.put("suppress", (step, table) -> table
            .suppress(Suppressed.untilTimeLimit(Topologies.ms(60), BufferConfig.unbounded())));
        OPERATORS.put("through-stream", (step, table) -> table.toStream().toTable());
    }
}
