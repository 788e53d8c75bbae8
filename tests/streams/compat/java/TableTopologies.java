import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.processor.ProcessorContext;

/** Tables: tombstones, filters, regrouping, joins. */
final class TableTopologies {
    private TableTopologies() {
    }

    static void define(Topologies topologies) {
        topologies.add("table", builder -> input(builder).toStream().to("out"));
        topologies.add("table-without-store", builder -> builder.<String, String>table("in").toStream().to("out"));
        topologies.add("table-filter", builder -> input(builder)
            .filter((key, value) -> Functions.isLong(value))
            .toStream().to("out"));
        topologies.add("table-filter-not", builder -> input(builder)
            .filterNot((key, value) -> Functions.isLong(value))
            .toStream().to("out"));
        topologies.add("table-filter-materialized", builder -> input(builder)
            .filter((key, value) -> Functions.isLong(value), Topologies.store("filtered"))
            .toStream().to("out"));
        topologies.add("table-map-values", builder -> input(builder)
            .mapValues(value -> Functions.plus(value, "m"))
            .toStream().to("out"));
        topologies.add("table-map-values-materialized", builder -> input(builder)
            .mapValues(value -> Functions.plus(value, "m"), Topologies.store("mapped"))
            .toStream().to("out"));
        topologies.add("table-filter-after-map", builder -> input(builder)
            .mapValues(value -> value + value)
            .filter((key, value) -> value.length() > 2)
            .toStream().to("out"));
        topologies.add("table-transform-values", builder -> input(builder)
            .transformValues(WithKey::new)
            .toStream().to("out"));
        topologies.add("table-transform-values-materialized", builder -> input(builder)
            .transformValues(WithKey::new, Topologies.store("transformed"))
            .toStream().to("out"));
        topologies.add("table-to-stream-new-key", builder -> input(builder)
            .toStream((key, value) -> Functions.first(value))
            .to("out"));
        topologies.add("to-table", builder -> StatelessTopologies.input(builder)
            .toTable(Topologies.store("table"))
            .toStream().to("out"));
        topologies.add("to-table-new-key", builder -> StatelessTopologies.input(builder)
            .selectKey((key, value) -> Functions.first(value))
            .toTable(Topologies.store("table"))
            .toStream().to("out"));
        topologies.add("table-group-count", builder -> input(builder)
            .groupBy((key, value) -> KeyValue.pair(Functions.first(value), value))
            .count(Topologies.store("grouped"))
            .toStream().to("out"));
        topologies.add("table-group-reduce", builder -> input(builder)
            .groupBy((key, value) -> KeyValue.pair(Functions.first(value), value))
            .reduce(
                (aggregate, value) -> Functions.plus(aggregate, value),
                (aggregate, value) -> Functions.removed(aggregate, value),
                Topologies.store("grouped"))
            .toStream().to("out"));
        topologies.add("table-group-aggregate", builder -> input(builder)
            .groupBy((key, value) -> KeyValue.pair(Functions.first(value), value))
            .aggregate(
                () -> "",
                (key, value, aggregate) -> Functions.plus(aggregate, value),
                (key, value, aggregate) -> Functions.removed(aggregate, value),
                Topologies.store("grouped"))
            .toStream().to("out"));
        topologies.add("table-group-null-key", builder -> input(builder)
            .groupBy((key, value) -> KeyValue.pair(Functions.reference(value), value))
            .aggregate(
                () -> "",
                (key, value, aggregate) -> Functions.plus(aggregate, value),
                (key, value, aggregate) -> Functions.removed(aggregate, value),
                Topologies.store("grouped"))
            .toStream().to("out"));
        topologies.add("table-filter-group-count", builder -> input(builder)
            .filter((key, value) -> Functions.isLong(value))
            .groupBy((key, value) -> KeyValue.pair(Functions.first(value), value))
            .count(Topologies.store("grouped"))
            .toStream().to("out"));
        defineJoins(topologies);
    }

    private static void defineJoins(Topologies topologies) {
        topologies.add("table-join", builder -> left(builder)
            .join(right(builder), Functions::plus).toStream().to("out"));
        topologies.add("table-left-join", builder -> left(builder)
            .leftJoin(right(builder), Functions::plus).toStream().to("out"));
        topologies.add("table-outer-join", builder -> left(builder)
            .outerJoin(right(builder), Functions::plus).toStream().to("out"));
        topologies.add("table-join-materialized", builder -> left(builder)
            .join(right(builder), Functions::plus, Topologies.store("joined")).toStream().to("out"));
        topologies.add("table-left-join-materialized", builder -> left(builder)
            .leftJoin(right(builder), Functions::plus, Topologies.store("joined")).toStream().to("out"));
        topologies.add("table-outer-join-materialized", builder -> left(builder)
            .outerJoin(right(builder), Functions::plus, Topologies.store("joined")).toStream().to("out"));
        topologies.add("table-filter-join", builder -> left(builder)
            .filter((key, value) -> Functions.isLong(value))
            .join(right(builder).mapValues(value -> Functions.first(value)), Functions::plus)
            .toStream().to("out"));
        topologies.add("table-join-itself", builder -> {
            KTable<String, String> table = input(builder);
            table.join(table.mapValues(value -> Functions.first(value)), Functions::plus).toStream().to("out");
        });
        topologies.add("foreign-key-join", builder -> left(builder)
            .join(right(builder), value -> Functions.reference(value), Functions::plus).toStream().to("out"));
        topologies.add("foreign-key-left-join", builder -> left(builder)
            .leftJoin(right(builder), value -> Functions.reference(value), Functions::plus).toStream().to("out"));
        topologies.add("foreign-key-join-materialized", builder -> left(builder)
            .join(right(builder), value -> Functions.reference(value), Functions::plus, Topologies.store("joined"))
            .toStream().to("out"));
        topologies.add("foreign-key-left-join-materialized", builder -> left(builder)
            .leftJoin(right(builder), value -> Functions.reference(value), Functions::plus, Topologies.store("joined"))
            .toStream().to("out"));
        topologies.add("foreign-key-join-then-count", builder -> left(builder)
            .join(right(builder), value -> Functions.reference(value), Functions::plus)
            .groupBy((key, value) -> KeyValue.pair(Functions.first(value), value), Topologies.TEXTS)
            .count(Topologies.store("grouped"))
            .toStream().to("out"));
    }

    static KTable<String, String> input(StreamsBuilder builder) {
        return builder.table("in", Topologies.store("table"));
    }

    static KTable<String, String> left(StreamsBuilder builder) {
        return builder.table("left", Topologies.store("left-store"));
    }

    static KTable<String, String> right(StreamsBuilder builder) {
        return builder.table("right", Topologies.store("right-store"));
    }

    static final class WithKey implements ValueTransformerWithKey<String, String, String> {
        @Override
        public void init(ProcessorContext context) {
        }

        @Override
        public String transform(String key, String value) {
            return value == null ? null : Functions.plus(key, value);
        }

        @Override
        public void close() {
        }
    }
}
