"""What goes in and out of topics: Kafka's BrokerTopicMetrics, for each topic and for all of them.

A partition holds its topic's `TopicMetrics` and adds to its numbers. The numbers of all topics are not kept: they are
summed when they are read, together with those of topics that are gone, so that they never go back.
"""

from typing import Final

# Each attribute of TopicMetrics, and the name Kafka has for it.
TOPIC_COUNTERS: Final = {
    "messages_in": ("MessagesInPerSec", "Records appended by producers."),
    "bytes_in": ("BytesInPerSec", "Bytes of record batches appended by producers."),
    "bytes_out": ("BytesOutPerSec", "Bytes of record batches given to consumers."),
    "bytes_rejected": ("BytesRejectedPerSec", "Bytes of record batches refused because they were too large."),
    "total_produce_requests": (
        "TotalProduceRequestsPerSec",
        "Partitions that produce requests wrote or tried to write to.",
    ),
    "total_fetch_requests": ("TotalFetchRequestsPerSec", "Partitions that fetch requests read or tried to read."),
    "failed_produce_requests": ("FailedProduceRequestsPerSec", "Writes to a partition that failed."),
    "failed_fetch_requests": ("FailedFetchRequestsPerSec", "Reads of a partition that failed."),
    "produce_message_conversions": (
        "ProduceMessageConversionsPerSec",
        "Records that had to be built anew before they were appended, to compress them as the topic asks.",
    ),
    "no_key_compacted_topic_records": (
        "NoKeyCompactedTopicRecordsPerSec",
        "Records refused because they have no key and their topic is compacted.",
    ),
    "invalid_magic_number_records": (
        "InvalidMagicNumberRecordsPerSec",
        "Batches refused because their format is not the current one.",
    ),
    "invalid_message_crc_records": ("InvalidMessageCrcRecordsPerSec", "Batches refused because their CRC is wrong."),
    "invalid_offset_or_sequence_records": (
        "InvalidOffsetOrSequenceRecordsPerSec",
        "Batches refused because their offsets or sequence numbers do not follow on.",
    ),
}


class TopicMetrics:
    """One topic's numbers: `metrics.bytes_in += size`. Written by the event loop's thread."""

    __slots__ = tuple(TOPIC_COUNTERS)

    messages_in: int
    bytes_in: int
    bytes_out: int
    bytes_rejected: int
    total_produce_requests: int
    total_fetch_requests: int
    failed_produce_requests: int
    failed_fetch_requests: int
    produce_message_conversions: int
    no_key_compacted_topic_records: int
    invalid_magic_number_records: int
    invalid_message_crc_records: int
    invalid_offset_or_sequence_records: int

    def __init__(self) -> None:
        for counter in TOPIC_COUNTERS:
            setattr(self, counter, 0)

    def add(self, other: "TopicMetrics") -> None:
        for counter in TOPIC_COUNTERS:
            setattr(self, counter, getattr(self, counter) + getattr(other, counter))


class BrokerTopicMetrics:
    """The numbers of every topic of a broker. Changed by the event loop's thread, read by any."""

    def __init__(self) -> None:
        self.no_topic = TopicMetrics()
        """For what belongs to no topic this broker has: it counts among all topics only."""
        # One tuple, so that a reader finds a topic's numbers with the topic or among those gone, never in both.
        self._topics_and_gone: tuple[dict[str, TopicMetrics], TopicMetrics] = ({}, TopicMetrics())

    def of(self, topic: str) -> TopicMetrics:
        """Made on first use; a partition holds on to it."""
        topics, _ = self._topics_and_gone
        metrics = topics.get(topic)
        if metrics is None:
            metrics = topics[topic] = TopicMetrics()
        return metrics

    def remove(self, topic: str) -> None:
        """The topic is deleted, or has no partition here any more: only its part of the sums remains."""
        topics, gone = self._topics_and_gone
        if topic in topics:
            remaining = topics.copy()
            all_gone = TopicMetrics()
            all_gone.add(gone)
            all_gone.add(remaining.pop(topic))
            self._topics_and_gone = (remaining, all_gone)

    def read(self) -> tuple[list[tuple[str, TopicMetrics]], TopicMetrics]:
        """Each topic with its numbers, and the sums over all topics that there are or were."""
        topics, gone = self._topics_and_gone
        each = list(topics.items())
        every = TopicMetrics()
        every.add(gone)
        every.add(self.no_topic)
        for _, metrics in each:
            every.add(metrics)
        return each, every
