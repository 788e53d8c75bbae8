import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;

/** Streams to tables: grouping, then one aggregate for each key. */
final class AggregationTopologies {
    private AggregationTopologies() {
    }

    static void define(Topologies topologies) {
        topologies.add("count", builder -> StatelessTopologies.input(builder)
            .groupByKey()
            .count(Topologies.store("counts"))
            .toStream().to("out"));
        topologies.add("count-without-name", builder -> StatelessTopologies.input(builder)
            .groupByKey()
            .count()
            .toStream().to("out"));
        topologies.add("group-by-count", builder -> StatelessTopologies.input(builder)
            .groupBy((key, value) -> Functions.first(value))
            .count(Topologies.store("counts"))
            .toStream().to("out"));
        topologies.add("flat-map-group-by-count", builder -> StatelessTopologies.input(builder)
            .flatMapValues(value -> Functions.letters(value))
            .groupBy((key, letter) -> letter)
            .count(Topologies.store("counts"))
            .toStream().to("out"));
        topologies.add("reduce", builder -> StatelessTopologies.input(builder)
            .groupByKey()
            .reduce((left, right) -> Functions.appended(left, right), Topologies.store("reduced"))
            .toStream().to("out"));
        topologies.add("aggregate", builder -> StatelessTopologies.input(builder)
            .groupByKey()
            .aggregate(() -> "", (key, value, aggregate) -> Functions.appended(aggregate, value), Topologies.store("aggregated"))
            .toStream().to("out"));
        topologies.add("cogroup", builder -> {
            KGroupedStream<String, String> left = builder.<String, String>stream("left").groupByKey();
            KGroupedStream<String, String> right = builder.<String, String>stream("right").groupByKey();
            left.<String>cogroup((key, value, aggregate) -> Functions.appended(aggregate, value))
                .cogroup(right, (key, value, aggregate) -> Functions.removed(aggregate, value))
                .aggregate(() -> "", Topologies.store("cogrouped"))
                .toStream().to("out");
        });
        topologies.add("cogroup-repartitioned", builder -> {
            KGroupedStream<String, String> left =
                builder.<String, String>stream("left").groupBy((key, value) -> Functions.first(value));
            KGroupedStream<String, String> right = builder.<String, String>stream("right").groupByKey();
            left.<String>cogroup((key, value, aggregate) -> Functions.appended(aggregate, value))
                .cogroup(right, (key, value, aggregate) -> Functions.removed(aggregate, value))
                .aggregate(() -> "", Topologies.store("cogrouped"))
                .toStream().to("out");
        });
        topologies.add("cogroup-tumbling", builder -> {
            KGroupedStream<String, String> left = builder.<String, String>stream("left").groupByKey();
            KGroupedStream<String, String> right = builder.<String, String>stream("right").groupByKey();
            left.<String>cogroup((key, value, aggregate) -> Functions.appended(aggregate, value))
                .cogroup(right, (key, value, aggregate) -> Functions.removed(aggregate, value))
                .windowedBy(TimeWindows.ofSizeAndGrace(Topologies.ms(100), Topologies.ms(50)))
                .aggregate(() -> "", Topologies.<String>windowStore("cogrouped").withKeySerde(Serdes.String()))
                .toStream().to("out");
        });
        topologies.add("cogroup-sliding", builder -> {
            KGroupedStream<String, String> left = builder.<String, String>stream("left").groupByKey();
            KGroupedStream<String, String> right = builder.<String, String>stream("right").groupByKey();
            left.<String>cogroup((key, value, aggregate) -> Functions.appended(aggregate, value))
                .cogroup(right, (key, value, aggregate) -> Functions.removed(aggregate, value))
                .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(Topologies.ms(100), Topologies.ms(50)))
                .aggregate(() -> "", Topologies.<String>windowStore("cogrouped").withKeySerde(Serdes.String()))
                .toStream().to("out");
        });
        topologies.add("cogroup-session", builder -> {
            KGroupedStream<String, String> left = builder.<String, String>stream("left").groupByKey();
            KGroupedStream<String, String> right = builder.<String, String>stream("right").groupByKey();
            left.<String>cogroup((key, value, aggregate) -> Functions.appended(aggregate, value))
                .cogroup(right, (key, value, aggregate) -> Functions.removed(aggregate, value))
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(Topologies.ms(100), Topologies.ms(50)))
                .aggregate(() -> "", (key, one, other) -> Functions.plus(one, other),
                    Topologies.<String>sessionStore("cogrouped").withKeySerde(Serdes.String()))
                .toStream().to("out");
        });
    }
}
