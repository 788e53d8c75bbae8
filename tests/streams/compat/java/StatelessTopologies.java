import java.util.Map;
import java.util.stream.Collectors;

import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Repartitioned;

/** One record at a time, without state. */
final class StatelessTopologies {
    private StatelessTopologies() {
    }

    static void define(Topologies topologies) {
        topologies.add("map", builder -> input(builder)
            .map((key, value) -> KeyValue.pair(value, Functions.plus(key, value)))
            .to("out"));
        topologies.add("map-values", builder -> input(builder)
            .mapValues(value -> value == null ? null : value.toUpperCase())
            .to("out"));
        topologies.add("map-values-with-key", builder -> input(builder)
            .mapValues((key, value) -> Functions.plus(key, value))
            .to("out"));
        topologies.add("flat-map", builder -> input(builder)
            .flatMap((key, value) -> Functions.letters(value).stream()
                .map(letter -> KeyValue.pair(letter, key))
                .collect(Collectors.toList()))
            .to("out"));
        topologies.add("flat-map-values", builder -> input(builder)
            .flatMapValues(value -> Functions.letters(value))
            .to("out"));
        topologies.add("filter", builder -> {
            KStream<String, String> input = input(builder);
            input.filter((key, value) -> Functions.isLong(value)).to("out");
            input.filterNot((key, value) -> Functions.isLong(value)).to("out-not");
        });
        topologies.add("select-key", builder -> input(builder)
            .selectKey((key, value) -> Functions.first(value))
            .to("out"));
        topologies.add("split", builder -> {
            Map<String, KStream<String, String>> branches = input(builder).split(Named.as("by-"))
                .branch((key, value) -> Functions.first(value).equals("a"), Branched.as("a"))
                .branch((key, value) -> Functions.isLong(value), Branched.as("long"))
                .defaultBranch(Branched.as("other"));
            branches.get("by-a").to("out-a");
            branches.get("by-long").to("out-long");
            branches.get("by-other").to("out-other");
        });
        topologies.add("split-without-default", builder -> {
            Map<String, KStream<String, String>> branches = input(builder).split(Named.as("by-"))
                .branch((key, value) -> Functions.first(value).equals("a"), Branched.as("a"))
                .branch((key, value) -> Functions.isLong(value), Branched.as("long"))
                .noDefaultBranch();
            branches.get("by-a").to("out-a");
            branches.get("by-long").to("out-long");
        });
        topologies.add("merge", builder -> builder.<String, String>stream("left")
            .merge(builder.stream("right"))
            .to("out"));
        topologies.add("peek", builder -> input(builder)
            .peek((key, value) -> Functions.plus(key, value))
            .to("out"));
        topologies.add("topic-extractor", builder -> input(builder)
            .to((key, value, context) -> "out-" + (Functions.isLong(value) ? "long" : "short")));
        topologies.add("two-sinks", builder -> {
            KStream<String, String> input = input(builder);
            input.to("out-before");
            input.mapValues(value -> Functions.text(value)).to("out-after");
            input.to("out-again");
        });
        topologies.add("repartition", builder -> input(builder)
            .selectKey((key, value) -> value)
            .repartition(Repartitioned.as("by-value"))
            .to("out"));
    }

    static KStream<String, String> input(StreamsBuilder builder) {
        return builder.stream("in");
    }
}
