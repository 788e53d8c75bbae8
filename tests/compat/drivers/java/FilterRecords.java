import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;

/**
 * Filters the batches of a file as Kafka's cleaner does: of each key the last record stays, tombstones until their
 * delete horizon. An empty batch stays if it has a producer.
 *
 * Arguments: the file with the batches, the one to write, the time now, delete.retention.ms.
 */
public final class FilterRecords {
    public static void main(String[] arguments) throws IOException {
        byte[] batches = Files.readAllBytes(Path.of(arguments[0]));
        long now = Long.parseLong(arguments[2]);
        long deleteRetentionMs = Long.parseLong(arguments[3]);
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(batches));
        Map<ByteBuffer, Long> lastOffsets = new HashMap<>();
        for (RecordBatch batch : records.batches()) {
            for (Record record : batch) {
                if (record.hasKey()) {
                    ByteBuffer key = ByteBuffer.allocate(record.keySize()).put(record.key());
                    lastOffsets.put(key.flip(), record.offset());
                }
            }
        }
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(now, deleteRetentionMs) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                BatchRetention retention =
                    batch.hasProducerId() ? BatchRetention.RETAIN_EMPTY : BatchRetention.DELETE_EMPTY;
                return new BatchRetentionResult(retention, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                if (!record.hasKey() || record.offset() < lastOffsets.get(record.key())) {
                    return false;
                }
                boolean horizonHasPassed =
                    batch.deleteHorizonMs().isPresent() && batch.deleteHorizonMs().getAsLong() <= now;
                return record.hasValue() || !horizonHasPassed;
            }
        };
        ByteBuffer room = ByteBuffer.allocate(3 * batches.length);
        ByteBuffer kept = records.filterTo(filter, room, BufferSupplier.NO_CACHING).outputBuffer().flip();
        byte[] written = new byte[kept.remaining()];
        kept.get(written);
        Files.write(Path.of(arguments[1]), written);
    }
}
