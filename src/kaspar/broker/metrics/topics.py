"""The traffic of topics: Kafka's BrokerTopicMetrics, for each topic and for all of them.

A partition holds its topic's `TopicMetrics` and adds to its counters. The sums over all topics are not kept, but
computed when they are read, including topics that are gone, so that they never go back.
"""

from typing import Final

# Each attribute of TopicMetrics, with its name in Kafka and its help text.
TOPIC_COUNTERS: Final = {
    "messages_in": ("MessagesInPerSec", "Records that producers wrote, including duplicates of retries."),
    "bytes_in": ("BytesInPerSec", "Bytes of record batches that producers wrote, as they sent them."),
    "bytes_out": ("BytesOutPerSec", "Bytes of record batches sent to consumers."),
    "bytes_rejected": ("BytesRejectedPerSec", "Bytes of record batches rejected because of max.message.bytes."),
    "total_produce_requests": (
        "TotalProduceRequestsPerSec",
        "Partitions of this broker that produce requests wrote or tried to write to.",
    ),
    "total_fetch_requests": (
        "TotalFetchRequestsPerSec",
        "Partitions of this broker that fetch requests read or tried to read.",
    ),
    "failed_produce_requests": (
        "FailedProduceRequestsPerSec",
        "Writes to a partition that failed. Not counted: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, and batches that "
        "are too large or have a wrong CRC.",
    ),
    "failed_fetch_requests": (
        "FailedFetchRequestsPerSec",
        "Reads of a partition that failed. Not counted: errors of leadership and of leader epochs, OFFSET_OUT_OF_RANGE "
        "and KAFKA_STORAGE_ERROR.",
    ),
    "produce_message_conversions": (
        "ProduceMessageConversionsPerSec",
        "Records that were rebuilt before they were appended, to compress them as the topic requires.",
    ),
    "no_key_compacted_topic_records": (
        "NoKeyCompactedTopicRecordsPerSec",
        "Records rejected because they have no key and their topic is compacted.",
    ),
    "invalid_magic_number_records": (
        "InvalidMagicNumberRecordsPerSec",
        "Always 0, as in Apache Kafka 4: batches of another format are rejected before they reach a log.",
    ),
    "invalid_message_crc_records": (
        "InvalidMessageCrcRecordsPerSec",
        "Batches rejected because their CRC does not match.",
    ),
    "invalid_offset_or_sequence_records": (
        "InvalidOffsetOrSequenceRecordsPerSec",
        "Batches rejected because their offsets contradict their record count, because they have a producer id but "
        "no sequence number, or because they are control batches.",
    ),
}


class TopicMetrics:
    """The counters of one topic, as in `metrics.bytes_in += size`. Written by the event loop's thread."""

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
    """The counters of all topics of a broker. Changed by the event loop's thread, read by any."""

    def __init__(self) -> None:
        # One tuple, so that a reader finds a topic's counters either with the topic or among those gone, never in both.
        self._topics_and_gone: tuple[dict[str, TopicMetrics], TopicMetrics] = ({}, TopicMetrics())

    def of(self, topic: str) -> TopicMetrics:
        """The counters of a topic, created at first use. A partition keeps a reference to them."""
        topics, _ = self._topics_and_gone
        metrics = topics.get(topic)
        if metrics is None:
            metrics = topics[topic] = TopicMetrics()
        return metrics

    def remove(self, topic: str) -> None:
        """Keep only the sums of a topic that was deleted, or no longer has a partition here."""
        topics, gone = self._topics_and_gone
        if topic in topics:
            remaining = topics.copy()
            all_gone = TopicMetrics()
            all_gone.add(gone)
            all_gone.add(remaining.pop(topic))
            self._topics_and_gone = (remaining, all_gone)

    def read(self) -> tuple[list[tuple[str, TopicMetrics]], TopicMetrics]:
        """Each topic with its counters, and the sums over all current and former topics."""
        topics, gone = self._topics_and_gone
        each = list(topics.items())
        every = TopicMetrics()
        every.add(gone)
        for _, metrics in each:
            every.add(metrics)
        return each, every
