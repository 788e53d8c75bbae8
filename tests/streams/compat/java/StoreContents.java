import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStore;

/** What the stores with names of the topology's own hold at the end: [key, value, timestamp, window start, window end]. */
final class StoreContents {
    private StoreContents() {
    }

    static ObjectNode of(TopologyTestDriver driver) {
        ObjectNode contents = JsonNodeFactory.instance.objectNode();
        Map<String, StateStore> stores = new TreeMap<>(driver.getAllStateStores());
        stores.forEach((name, store) -> {
            if (!name.startsWith("KSTREAM-") && !name.contains("STATE-STORE-")) {
                try (KeyValueIterator<?, ?> entries = all(name, store)) {
                    ArrayNode rows = contents.putArray(name);
                    entries.forEachRemaining(entry -> addRow(rows.addArray(), entry));
                }
            }
        });
        return contents;
    }

    private static KeyValueIterator<?, ?> all(String name, StateStore store) {
        if (store instanceof ReadOnlyKeyValueStore<?, ?> keyValues) {
            return keyValues.all();
        }
        if (store instanceof WindowStore<?, ?> windows) {
            return windows.all();
        }
        if (store instanceof SessionStore<?, ?> sessions) {
            return sessions.fetch(null, null);
        }
        throw new IllegalStateException("the store " + name + " is of an unknown kind: " + store.getClass());
    }

    private static void addRow(ArrayNode row, KeyValue<?, ?> entry) {
        Object key = entry.key instanceof Windowed<?> windowed ? windowed.key() : entry.key;
        boolean hasTimestamp = entry.value instanceof ValueAndTimestamp;
        Object value = hasTimestamp ? ((ValueAndTimestamp<?>) entry.value).value() : entry.value;
        row.add(key.toString()).add(value.toString());
        row.add(hasTimestamp ? ((ValueAndTimestamp<?>) entry.value).timestamp() : null);
        if (entry.key instanceof Windowed<?> windowed) {
            row.add(windowed.window().start()).add(windowed.window().end());
        }
    }
}
