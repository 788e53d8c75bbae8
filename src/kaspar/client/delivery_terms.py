"""The settings of a producer, and the partitions of a topic, as plain values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeliveryTerms:
    """Limits and timeouts of a producer, with the names of Kafka's settings."""

    acks: int = -1
    max_in_flight: int = 5
    retries: int = (1 << 31) - 1
    max_request_size: int = 1024 * 1024
    buffer_memory: int = 32 * 1024 * 1024
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    max_block_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000

    def backoff_ms(self, attempts: int) -> int:
        return min(self.retry_backoff_ms << min(attempts - 1, 20), self.retry_backoff_max_ms)


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    count: int
    available: tuple[int, ...]
    """The partitions that have a leader."""
