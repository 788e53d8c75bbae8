"""The topics in which coordinators keep their state: how they are made, read and written, from the broker's settings.

They are made at their first use. Where Kafka refuses to make them with more replicas than there are brokers, they get
as many as there are: a broker that was just started, alone and with default settings, has to serve groups.
"""

from dataclasses import dataclass
from typing import Final

from kaspar.config import BrokerConfig
from kaspar.metadata.events import NewTopic
from kaspar.records import Codec

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"


@dataclass(frozen=True, slots=True)
class InternalTopic:
    name: str
    num_partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...]
    codec: Codec
    """What the coordinator compresses its batches with."""
    load_buffer_size: int
    """How many bytes are read at once when a partition is loaded."""
    write_timeout_ms: int
    """How long an answer waits for the records behind it to be committed."""

    def to_create(self, broker_count: int) -> NewTopic:
        factor = max(1, min(self.replication_factor, broker_count))
        return NewTopic(self.name, self.num_partitions, factor, configs=self.configs)


def consumer_offsets(config: BrokerConfig) -> InternalTopic:
    return InternalTopic(
        CONSUMER_OFFSETS,
        config.offsets_topic_num_partitions,
        config.offsets_topic_replication_factor,
        (
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(config.offsets_topic_segment_bytes)),
        ),
        Codec(config.offsets_topic_compression_codec),
        config.offsets_load_buffer_size,
        config.offsets_commit_timeout_ms,
    )


def transaction_state(config: BrokerConfig) -> InternalTopic:
    return InternalTopic(
        TRANSACTION_STATE,
        config.transaction_state_log_num_partitions,
        config.transaction_state_log_replication_factor,
        (
            ("cleanup.policy", "compact"),
            ("compression.type", "uncompressed"),
            ("min.insync.replicas", str(config.transaction_state_log_min_isr)),
            ("segment.bytes", str(config.transaction_state_log_segment_bytes)),
            ("unclean.leader.election.enable", "false"),
        ),
        Codec.NONE,
        config.transaction_state_log_load_buffer_size,
        config.request_timeout_ms,
    )
