"""The topics in which coordinators keep their state: how the settings have them created, read and written.

They are created at their first use. In a cluster that waits, as in Kafka, until enough brokers are up for their
replication factor, which never changes afterwards. With the embedded store there is only one broker, and they get one
replica: a single broker with default settings has to serve groups.
"""

from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.config import BrokerConfig
from kaspar.controller.events import NewTopic
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
    """How the coordinator compresses its batches."""
    load_buffer_size: int
    """How many bytes are read at once when a partition is loaded."""
    write_timeout_ms: int
    """How long a response waits for its records to be committed."""

    def to_create(self, broker_count: int, *, is_clustered: bool) -> NewTopic:
        """The topic to create. Raises Refused (COORDINATOR_NOT_AVAILABLE) while there are too few brokers."""
        factor = self.replication_factor if is_clustered else 1
        if broker_count < factor:
            raise Refused(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"{broker_count} brokers are up, but the replication factor of {self.name} requires {factor}.",
            )
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
