import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** The Processor API inside the DSL: stores, forwarding, punctuation. */
final class ProcessorTopologies {
    private ProcessorTopologies() {
    }

    static void define(Topologies topologies) {
        topologies.add("process-store", builder -> withStore(builder)
            .stream("in").process(() -> new Previous("previous"), "previous").to("out"));
        topologies.add("process-values-store", builder -> withStore(builder)
            .stream("in").processValues(() -> new PreviousValue("previous"), "previous").to("out"));
        topologies.add("process-values-then-group", builder -> withStore(builder)
            .stream("in").processValues(() -> new PreviousValue("previous"), "previous")
            .groupByKey().count(Topologies.store("counts")).toStream().to("out"));
        topologies.add("process-then-group", builder -> withStore(builder)
            .stream("in").process(() -> new Previous("previous"), "previous")
            .groupByKey().count(Topologies.store("counts")).toStream().to("out"));
        topologies.add("punctuate-stream-time", builder -> withStore(builder)
            .stream("in").process(() -> new Collecting(PunctuationType.STREAM_TIME, 50), "previous").to("out"));
        topologies.add("punctuate-wall-clock", builder -> withStore(builder)
            .stream("in").process(() -> new Collecting(PunctuationType.WALL_CLOCK_TIME, 50), "previous").to("out"));
        topologies.add("punctuate-once", builder -> withStore(builder)
            .stream("in").process(PunctuatedOnce::new, "previous").to("out"));
    }

    private static TypedBuilder withStore(StreamsBuilder builder) {
        builder.addStateStore(Stores.keyValueStoreBuilder(
            Stores.inMemoryKeyValueStore("previous"), Serdes.String(), Serdes.String()));
        return new TypedBuilder(builder);
    }

    /** Gives streams their types, so that a chain can start with one. */
    private record TypedBuilder(StreamsBuilder builder) {
        KStream<String, String> stream(String topic) {
            return builder.stream(topic);
        }
    }

    /** Forwards the previous value of the key with the new one, 5 ms later than the record. Null deletes. */
    static final class Previous implements Processor<String, String, String, String> {
        private final String storeName;
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> store;

        Previous(String storeName) {
            this.storeName = storeName;
        }

        @Override
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
            store = context.getStateStore(storeName);
        }

        @Override
        public void process(Record<String, String> record) {
            String key = Functions.text(record.key());
            String joined = Functions.plus(store.get(key), record.value());
            store.put(key, record.value());
            context.forward(record.withKey(key).withValue(joined).withTimestamp(record.timestamp() + 5));
        }
    }

    /** The same without a change of key and time. */
    static final class PreviousValue implements FixedKeyProcessor<String, String, String> {
        private final String storeName;
        private FixedKeyProcessorContext<String, String> context;
        private KeyValueStore<String, String> store;

        PreviousValue(String storeName) {
            this.storeName = storeName;
        }

        @Override
        public void init(FixedKeyProcessorContext<String, String> context) {
            this.context = context;
            store = context.getStateStore(storeName);
        }

        @Override
        public void process(FixedKeyRecord<String, String> record) {
            String key = Functions.text(record.key());
            String joined = Functions.plus(store.get(key), record.value());
            store.put(key, record.value());
            context.forward(record.withValue(joined));
        }
    }

    /** Collects values by key; each punctuation forwards and forgets them, in the order of the store. */
    private static final class Collecting implements Processor<String, String, String, String> {
        private final PunctuationType type;
        private final long interval;
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> store;

        Collecting(PunctuationType type, long interval) {
            this.type = type;
            this.interval = interval;
        }

        @Override
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
            store = context.getStateStore("previous");
            context.schedule(Topologies.ms(interval), type, this::punctuate);
        }

        @Override
        public void process(Record<String, String> record) {
            String key = Functions.text(record.key());
            store.put(key, Functions.plus(store.get(key), record.value()));
        }

        private void punctuate(long timestamp) {
            List<KeyValue<String, String>> all = new ArrayList<>();
            try (KeyValueIterator<String, String> entries = store.all()) {
                entries.forEachRemaining(all::add);
            }
            for (KeyValue<String, String> entry : all) {
                store.delete(entry.key);
                context.forward(new Record<>(entry.key, entry.value, timestamp));
            }
            context.forward(new Record<>("tick", Functions.text(all.size()), timestamp));
        }
    }

    /** A punctuation that cancels itself, and one of another interval beside it; both show the stream time. */
    private static final class PunctuatedOnce implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private Cancellable once;

        @Override
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
            once = context.schedule(Topologies.ms(100), PunctuationType.STREAM_TIME, this::punctuateOnce);
            context.schedule(Topologies.ms(70), PunctuationType.STREAM_TIME, this::punctuate);
        }

        @Override
        public void process(Record<String, String> record) {
            context.forward(record.withValue(Functions.plus(record.value(), context.currentStreamTimeMs())));
        }

        private void punctuateOnce(long timestamp) {
            context.forward(new Record<>("once", Functions.text(context.currentStreamTimeMs()), timestamp));
            if (timestamp >= 100) {
                once.cancel();
            }
        }

        private void punctuate(long timestamp) {
            context.forward(new Record<>("often", Functions.text(context.currentStreamTimeMs()), timestamp));
        }
    }
}
