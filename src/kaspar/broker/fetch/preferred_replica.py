"""Chooses the replica for a consumer to read from (KIP-392): one in its rack, as Kafka's RackAwareReplicaSelector."""

from typing import Final

from kaspar.metadata import ClusterImage
from kaspar.replication.partition import Partition

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The only known `replica.selector.class`. With none, consumers read from the leader."""
NO_REPLICA: Final = -1


def preferred_read_replica(
    partition: Partition, image: ClusterImage, *, rack_id: str, listener: str, fetch_offset: int
) -> int:
    """Called by the leader: the in-sync follower in the consumer's rack that has the most records, if it has the fetch
    offset. -1 for the leader itself, because it is in that rack, or because no such follower is.
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
