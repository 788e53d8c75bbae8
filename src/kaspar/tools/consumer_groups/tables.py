"""The printed columns, which scripts parse: their order, their widths and the sign for a missing value."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.groups import GroupDescription, GroupListing, GroupMember
from kaspar.client.offsets import by_topic
from kaspar.tools.kafka_errors import exception_text

MISSING: Final = "-"
_WIDTH: Final = 15
"""The minimum width of a column of names."""


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """A partition with an offset committed by the group, or assigned to a member."""

    group_id: str
    partition: TopicPartition
    leader_epoch: int | None
    offset: int | None
    log_end_offset: int | None
    member_id: str = MISSING
    host: str = MISSING
    client_id: str = MISSING

    @property
    def lag(self) -> int | None:
        if self.offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.offset


def group_list(groups: Sequence[GroupListing], *, with_type: bool, with_state: bool) -> Iterator[str]:
    width = _widest(each.group_id for each in groups) + 10
    for name, kind, state in (("GROUP", "TYPE", "STATE"), *((g.group_id, g.type, g.state) for g in groups)):
        columns = [f"{name:<{width}}"]
        columns += [f"{kind:<20}"] if with_type else []
        columns += [f"{state:<20}"] if with_state else []
        yield " ".join(columns)


def offset_table(rows: Sequence[OffsetRow], *, verbose: bool) -> Iterator[str]:
    """The table, preceded by an empty line."""
    header = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    header += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    lines = [header]
    for row in rows:
        numbers = (row.partition.partition, row.leader_epoch, row.offset, row.log_end_offset, row.lag)
        lines.append([row.group_id, row.partition.topic, *map(_shown, numbers), row.member_id, row.host, row.client_id])
    widths = [
        _widest(row.group_id for row in rows),
        _widest(row.partition.topic for row in rows),
        *(10, 15, 15, 15, 15),
        _widest(row.member_id for row in rows),
        _widest(row.host for row in rows),
        0,
    ]
    yield ""
    for line in lines:
        cells = list(zip(line, widths, strict=True))
        if not verbose:
            del cells[header.index("LEADER-EPOCH")]
        yield _joined(cells)


def member_table(group: GroupDescription, *, verbose: bool) -> Iterator[str]:
    """The table, preceded by an empty line."""
    members = group.members
    with_instance = any(each.group_instance_id for each in members)
    with_upgrade = {True, False} <= {each.is_upgraded for each in members}
    widths = {
        "GROUP": _widest([group.group_id] if members else []),
        "CONSUMER-ID": _widest(each.member_id for each in members),
        "GROUP-INSTANCE-ID": _widest((each.group_instance_id or "" for each in members), at_least=17),
        "HOST": _widest(each.host for each in members),
        "CLIENT-ID": _widest(each.client_id for each in members),
        "#PARTITIONS": _WIDTH,
        "CURRENT-EPOCH": _WIDTH,
        "CURRENT-ASSIGNMENT": _widest((_assignment(each.assignment) for each in members), at_least=20),
        "TARGET-EPOCH": _WIDTH,
        "TARGET-ASSIGNMENT": _widest((_assignment(each.target_assignment) for each in members), at_least=20),
        "UPGRADED": 0,
    }
    columns = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    if with_instance:
        columns.insert(2, "GROUP-INSTANCE-ID")
    if verbose:
        columns += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        columns += ["UPGRADED"] if with_upgrade else []
    yield ""
    for line in [{name: name for name in columns}, *(_member(group, each) for each in members)]:
        text = _joined([(line[name], widths[name]) for name in columns])
        yield text if verbose else f"{text} "


def _member(group: GroupDescription, member: GroupMember) -> dict[str, str]:
    return {
        "GROUP": group.group_id,
        "CONSUMER-ID": member.member_id,
        "GROUP-INSTANCE-ID": member.group_instance_id or "",
        "HOST": member.host,
        "CLIENT-ID": member.client_id,
        "#PARTITIONS": str(len(member.assignment)),
        "CURRENT-EPOCH": _shown(member.member_epoch),
        "CURRENT-ASSIGNMENT": _assignment(member.assignment),
        "TARGET-EPOCH": _shown(group.target_assignment_epoch),
        "TARGET-ASSIGNMENT": _assignment(member.target_assignment),
        "UPGRADED": MISSING if member.is_upgraded is None else str(member.is_upgraded).lower(),
    }


def state_table(group: GroupDescription, *, verbose: bool) -> Iterator[str]:
    """The table, preceded by an empty line."""
    node = group.coordinator
    coordinator = f"{node.host}:{node.port}  ({node.broker_id})"
    lines = [
        ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"),
        (
            group.group_id,
            coordinator,
            group.assignor or MISSING,
            group.state,
            _shown(group.group_epoch),
            _shown(group.target_assignment_epoch),
        ),
    ]
    widths = [_widest([group.group_id]), _widest([coordinator], at_least=25), 20, 20, 15, 25]
    shown = 6 if verbose else 4
    yield ""
    for line, members in zip(lines, ("#MEMBERS", str(len(group.members))), strict=True):
        yield _joined([*zip(line[:shown], widths[:shown], strict=True), (members, 0)])


def new_offset_table(offsets: Mapping[str, Mapping[TopicPartition, int]]) -> Iterator[str]:
    """The table, preceded by an empty line. Without groups, only the empty line."""
    if not offsets:
        yield ""
        return
    rows = [
        (group_id, where.topic, str(where.partition), str(offset))
        for group_id, of_group in offsets.items()
        for where, offset in of_group.items()
    ]
    widths = [_widest(offsets), _widest(topic for _, topic, _, _ in rows), 10, 0]
    yield ""
    for row in (("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), *rows):
        yield _joined(list(zip(row, widths, strict=True)))


def deleted_offset_table(results: Mapping[TopicPartition, Refused | None]) -> Iterator[str]:
    """The table, preceded by an empty line. Partition -1 stands for a topic whose partitions are unknown."""
    width = _widest(where.topic for where in results)
    yield ""
    yield _joined([("TOPIC", width), ("PARTITION", 10), ("STATUS", _WIDTH)])
    for where in sorted(results, key=lambda each: f"{each.topic}{each.partition}"):
        refused = results[where]
        status = "Successful" if refused is None else f"Error: {exception_text(refused)}"
        number = MISSING if where.partition < 0 else str(where.partition)
        yield _joined([(where.topic, width), (number, 10), (status, _WIDTH)])


def _assignment(partitions: Collection[TopicPartition] | None) -> str:
    """orders:0,1;payments:0"""
    topics = (f"{topic}:{','.join(map(str, sorted(numbers)))}" for topic, numbers in by_topic(partitions or ()).items())
    return ";".join(sorted(topics)) or MISSING


def _shown(number: int | None) -> str:
    return MISSING if number is None else str(number)


def _widest(texts: Iterable[str], *, at_least: int = _WIDTH) -> int:
    return max([at_least, *map(len, texts)])


def _joined(cells: Sequence[tuple[str, int]]) -> str:
    return " ".join(f"{text:<{width}}" for text, width in cells)
