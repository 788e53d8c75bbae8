"""The owner of each partition: never two members of a group, in any generation or at any moment."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.chaos.history.events import Event, Killed, Lost, Owns, Paused
from tests.chaos.history.memberships import Memberships

Partition = tuple[str, int]


class Holding(NamedTuple):
    """`until_ns` is None where the member was put out or stood still meanwhile: it learned too late to know the end."""

    actor: str
    member_id: str
    epoch: int
    from_ns: int
    until_ns: int | None

    def __str__(self) -> str:
        return f"{self.actor} in epoch {self.epoch} from {self.from_ns} to {self.until_ns}"


def one_owner_per_epoch(events: Sequence[Event]) -> Iterator[str]:
    """In a generation (or at a member's epoch) a partition has one owner, whatever its former ones still believe."""
    owners: dict[tuple[str, int, Partition], str] = {}
    for event in events:
        if not isinstance(event, Owns):
            continue
        for partition in event.partitions:
            owner = owners.setdefault((event.group, event.epoch, partition), event.actor)
            if owner != event.actor:
                where = f"{partition[0]}-{partition[1]} of {event.group} in epoch {event.epoch}"
                yield f"{where} is held by {owner} and by {event.actor}"


def one_owner_at_a_time(events: Sequence[Event], memberships: Memberships) -> Iterator[str]:
    """A member that runs and is in the group gives a partition up before another has it. One that was put out may not
    know it: whether it was a member when the other came to its epoch is in the log.
    """
    for (group, partition), holdings in _holdings(events).items():
        last: Holding | None = None
        for holding in sorted(holdings, key=lambda each: each.from_ns):
            if holding.until_ns is None:
                continue
            members = memberships.get((group, holding.member_id, holding.epoch))
            was_put_out = last is not None and members is not None and last.member_id not in members
            if last is not None and last.until_ns is not None and holding.from_ns < last.until_ns and not was_put_out:
                yield f"{partition[0]}-{partition[1]} of {group} was held at the same time by {last}, and by {holding}"
            if last is None or last.until_ns is None or holding.until_ns > last.until_ns:
                last = holding


def _holdings(events: Sequence[Event]) -> dict[tuple[str, Partition], list[Holding]]:
    found: dict[tuple[str, Partition], list[Holding]] = defaultdict(list)
    held: dict[tuple[str, str], dict[Partition, Owns]] = defaultdict(dict)  # by actor and group: since when
    end_ns = events[-1].at_ns if events else 0

    def give_up(actor: str, group: str, partition: Partition, until_ns: int | None) -> None:
        since = held[actor, group].pop(partition)
        found[group, partition].append(Holding(actor, since.member_id, since.epoch, since.at_ns, until_ns))

    for event in events:
        if isinstance(event, Owns):
            holds = held[event.actor, event.group]
            for partition in set(holds) - set(event.partitions):
                give_up(event.actor, event.group, partition, event.at_ns)
            for partition in event.partitions:
                holds.setdefault(partition, event)
        elif isinstance(event, Lost | Killed | Paused):
            for actor, group in [key for key in held if key[0] == event.actor]:
                for partition in list(held[actor, group]):
                    give_up(actor, group, partition, event.at_ns if isinstance(event, Killed) else None)
    for actor, group in list(held):
        for partition in list(held[actor, group]):
            give_up(actor, group, partition, end_ns)
    return found
