"""The newest timestamps of records, which reveal producers with a wrong clock."""

from collections.abc import Collection

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.offsets import OffsetSpec, list_offsets
from kaspar.client.admin.session import Admin


def look_at_timestamps(admin: Admin, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The timestamps, for partitions that have records. Raises UnsupportedByPeer (before Kafka 3.0, KIP-734)."""
    found = list_offsets(admin, dict.fromkeys(partitions, OffsetSpec.MAX_TIMESTAMP.value)) if partitions else {}
    return {
        where: each.timestamp for where, each in found.items() if not isinstance(each, Refused) and each.timestamp >= 0
    }
