"""Checks of manual replica assignments. The order of the checks and their messages are Kafka's."""

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.metadata.image import ClusterImage


def check_replicas(image: ClusterImage, replicas: tuple[int, ...], factor: int | None) -> tuple[BrokerId, ...]:
    """The checked replicas of one partition. They may include brokers that are down but registered."""
    if not replicas:
        raise _bad_assignment("includes an empty replica list.")
    previous: int | None = None
    for broker in sorted(replicas):
        if not image.is_registered(BrokerId(broker)):
            raise _bad_assignment(f"includes broker {broker}, but no such broker is registered.")
        if broker == previous:
            raise _bad_assignment(f"includes the broker {broker} more than once.")
        previous = broker
    if factor is not None and factor != len(replicas):
        raise _bad_assignment(
            f"includes a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {factor} replica(s)."
        )
    return tuple(map(BrokerId, replicas))


def _bad_assignment(problem: str) -> Refused:
    return Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {problem}")
