"""Which replica a consumer had better read from (KIP-392): one in its own rack, as Kafka's RackAwareReplicaSelector."""

from typing import Final

from kaspar.metadata import ClusterImage
from kaspar.replication.partition import Partition

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The only `replica.selector.class` that is known besides none, with which everyone reads from the leader."""
NO_REPLICA: Final = -1


def preferred_read_replica(
    partition: Partition, image: ClusterImage, *, rack_id: str, listener: str, fetch_offset: int
) -> int:
    """For the leader: the in-sync follower in the consumer's rack that has the most, if it has the records that are
    asked for. -1: the leader itself, because it is in that rack, or because no other is.
    """
    state = partition.state
    racks = {
        registration.broker_id: registration.rack
        for registration, _ in image.endpoints_for(listener)
        if registration.broker_id in state.leadership.in_sync_replicas
    }
    if racks.get(state.broker_id) == rack_id:
        return NO_REPLICA
    candidates = [
        (follower.log_end_offset, follower.last_caught_up_ms or 0, broker_id)
        for broker_id, follower in state.followers.items()
        if racks.get(broker_id) == rack_id and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
    ]
    return max(candidates)[2] if candidates else NO_REPLICA
