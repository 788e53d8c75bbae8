import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** All topologies by name. topologies.py has the same ones, written with kaspar.streams. */
final class Topologies {
    /** Windowed keys are written by the serde of their grouping: the default serde does not do. */
    static final Grouped<String, String> TEXTS = Grouped.with(Serdes.String(), Serdes.String());
    static final Grouped<String, Long> LONGS = Grouped.with(Serdes.String(), Serdes.Long());

    private final Map<String, Consumer<StreamsBuilder>> definitions = new LinkedHashMap<>();

    Topologies() {
        StatelessTopologies.define(this);
        AggregationTopologies.define(this);
        WindowTopologies.define(this);
        SuppressTopologies.define(this);
        TableTopologies.define(this);
        JoinTopologies.define(this);
        JoinCornerTopologies.define(this);
        ProcessorTopologies.define(this);
        ChainTopologies.define(this);
    }

    void add(String name, Consumer<StreamsBuilder> definition) {
        if (definitions.put(name, definition) != null) {
            throw new IllegalStateException("two topologies are named " + name);
        }
    }

    Topology build(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        if (name.startsWith(Operators.PREFIX)) {
            Operators.build(name, builder);
        } else if (name.startsWith(TableOperators.PREFIX)) {
            TableOperators.build(name, builder);
        } else if (definitions.containsKey(name)) {
            definitions.get(name).accept(builder);
        } else {
            throw new IllegalArgumentException("there is no topology " + name + "; there are " + definitions.keySet());
        }
        return builder.build();
    }

    static Duration ms(long milliseconds) {
        return Duration.ofMillis(milliseconds);
    }

    static <V> Materialized<String, V, KeyValueStore<Bytes, byte[]>> store(String name) {
        return Materialized.as(name);
    }

    static <V> Materialized<String, V, WindowStore<Bytes, byte[]>> windowStore(String name) {
        return Materialized.as(name);
    }

    static <V> Materialized<String, V, SessionStore<Bytes, byte[]>> sessionStore(String name) {
        return Materialized.as(name);
    }
}
