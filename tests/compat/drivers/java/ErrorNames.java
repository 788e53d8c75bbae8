import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.common.protocol.Errors;

/** Kafka's names of what the clients throw. */
final class ErrorNames {
    private ErrorNames() {
    }

    /** The name of the first exception in the chain of causes that has one on the wire; else that of the outermost class. */
    static String of(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof NoOffsetForPartitionException) {
                return "NO_OFFSET";
            }
            Errors known = Errors.forException(cause);
            if (known != Errors.UNKNOWN_SERVER_ERROR) {
                return known.name();
            }
        }
        return failure.getClass().getSimpleName();
    }
}
