"""Conditions on consumers that scenarios wait for."""

from collections.abc import Mapping, Sequence

from tests.compat.clients.api import Client, Consumer, Partition, Seen
from tests.compat.scenario import eventually

TAKE_OVER_SECONDS = 30.0  # a session of 6 s, and the rebalance after it


def partitions_of(topic: str, count: int) -> set[Partition]:
    return {(topic, partition) for partition in range(count)}


def healthy(consumer: Consumer) -> Seen:
    """What a consumer has seen; it must not have given up."""
    seen = consumer.look()
    assert seen.error is None, f"the consumer has given up: {seen.error}"
    return seen


def wait_until_shared(
    consumers: Sequence[Consumer], partitions: set[Partition], *, seconds: float = TAKE_OVER_SECONDS
) -> None:
    """Each partition has one owner, and each consumer a partition."""

    def shared() -> bool:
        held = [healthy(consumer).assignment for consumer in consumers]
        return all(held) and sum(map(len, held)) == len(partitions) and set().union(*held) == partitions

    def held() -> str:
        return f"{len(partitions)} partitions shared: {[sorted(each.look().assignment) for each in consumers]}"

    eventually(shared, held, seconds=seconds)


def wait_for_values(
    consumers: Sequence[Consumer], values: Sequence[str], *, seconds: float = TAKE_OVER_SECONDS
) -> None:
    """All that these consumers have seen together, in whatever order, are these values; each comes once."""

    def seen() -> list[str]:
        return sorted(value for consumer in consumers for value in healthy(consumer).values)

    wanted = sorted(values)
    eventually(lambda: len(seen()) >= len(wanted), lambda: f"{wanted}, but {seen()}", seconds=seconds)
    assert seen() == wanted


def wait_for_offsets(client: Client, group: str, offsets: Mapping[Partition, int]) -> None:
    """Whatever words are beside them: franz-go always commits some."""

    def committed() -> dict[Partition, int]:
        return {(topic, partition): offset for topic, partition, offset, _ in client.group_offsets(group)}

    eventually(lambda: committed() == offsets, lambda: f"{offsets}, but {committed()}")
