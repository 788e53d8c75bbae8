"""The groups that read a topic, as the monitor's last round saw them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kaspar.monitor.views import GroupLag, PartitionLag, Status


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    group: str
    state: str
    status: str
    """The status of its worst partition of this topic."""
    lag: int
    lag_seconds: float | None
    partitions: int
    members: int
    """The number of members that read the topic, as far as the monitor knows them."""


def consumers_of(topic: str, groups: Mapping[str, GroupLag], visible: Collection[str] | None) -> list[ConsumerRow]:
    """The groups, those with the largest lag first. `visible` are the groups that the caller may see; None for all."""
    rows = []
    for group in groups.values():
        partitions = [each for each in group.partitions if each.topic == topic]
        if partitions and (visible is None or group.group in visible):
            rows.append(_row(group, partitions))
    return sorted(rows, key=lambda row: (-row.lag, row.group))


def _row(group: GroupLag, partitions: Collection[PartitionLag]) -> ConsumerRow:
    seconds = [each.lag_seconds for each in partitions if each.lag_seconds is not None]
    return ConsumerRow(
        group.group,
        group.state,
        Status(max(each.status for each in partitions)).name,
        sum(each.lag for each in partitions),
        max(seconds, default=None),
        len(partitions),
        len({each.owner.member_id for each in partitions if each.owner is not None}),
    )
