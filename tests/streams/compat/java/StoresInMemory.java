import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.InMemoryWindowBytesStoreSupplier;
import org.apache.kafka.streams.state.internals.InMemoryWindowStore;

/**
 * Kafka's stores in memory, which are created much faster than RocksDB. In one point they are made to behave as RocksDB:
 * to put null into a store that retains duplicates, as joins have it, does nothing. Kafka's own store in memory lets it
 * advance its stream time, and records that are late then are not found by the join.
 */
public final class StoresInMemory extends BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers {
    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams parameters) {
        if (!parameters.retainDuplicates()) {
            return super.windowStore(parameters);
        }
        String name = parameters.name();
        long retention = parameters.retentionPeriod().toMillis();
        long size = parameters.windowSize().toMillis();
        return new InMemoryWindowBytesStoreSupplier(name, retention, size, true) {
            @Override
            public WindowStore<Bytes, byte[]> get() {
                return new InMemoryWindowStore(name, retention, size, true, metricsScope()) {
                    @Override
                    public void put(Bytes key, byte[] value, long windowStart) {
                        if (value != null) {
                            super.put(key, value, windowStart);
                        }
                    }
                };
            }
        };
    }
}
