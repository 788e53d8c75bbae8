"""The list of groups. All groups are listed with one request to each broker, and get their lag from the monitor. Only
the groups on the page are described, for the number of their members."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from kaspar.base.errors import Refused
from kaspar.client.admin.groups import GroupListing, describe_consumer_groups
from kaspar.client.admin.session import Admin
from kaspar.monitor.views import GroupLag, Status


class SortKey(StrEnum):
    GROUP = "group"
    TYPE = "type"
    STATE = "state"
    STATUS = "status"
    LAG = "lag"
    LAG_SECONDS = "lag_seconds"


@dataclass(frozen=True, slots=True)
class GroupQuery:
    search: str = ""
    """A part of the group id; case-insensitive."""
    state: str = ""
    type: str = ""
    status: str = ""
    sort: SortKey = SortKey.GROUP
    descending: bool = False
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class GroupRow:
    group_id: str
    type: str
    protocol_type: str
    state: str
    total_lag: int | None
    """Like the other figures of the monitor, None until one of its rounds has seen the group."""
    max_lag_seconds: float | None
    status: str | None
    members: int | None = None
    """The number of members; None if it is not a consumer group."""


@dataclass(frozen=True, slots=True)
class GroupPage:
    rows: tuple[GroupRow, ...]
    matching: int
    total: int
    states: Mapping[str, int]
    """The number of groups in each state; the next two count them by type and status. All groups are counted."""
    types: Mapping[str, int]
    statuses: Mapping[str, int]


def select(listed: Sequence[GroupListing], lags: Mapping[str, GroupLag], query: GroupQuery) -> GroupPage:
    """The requested page, without the numbers of members."""
    rows = [_row(each, lags.get(each.group_id)) for each in listed]
    matching = sorted((row for row in rows if _matches(row, query)), key=lambda row: row.group_id)
    if query.sort is not SortKey.GROUP:
        matching.sort(key=_SORTED_BY[query.sort], reverse=query.descending)
    elif query.descending:
        matching.reverse()
    return GroupPage(
        tuple(matching[query.offset : query.offset + query.limit]),
        len(matching),
        len(rows),
        Counter(row.state for row in rows),
        Counter(row.type for row in rows),
        Counter(row.status for row in rows if row.status is not None),
    )


def with_members(admin: Admin, page: GroupPage) -> GroupPage:
    """The same page with the number of members of each group."""
    return replace(page, rows=tuple(_counted(page.rows, _members(admin, [row.group_id for row in page.rows]))))


def _counted(rows: Iterable[GroupRow], members: Mapping[str, int]) -> Iterable[GroupRow]:
    return (replace(row, members=members.get(row.group_id)) for row in rows)


def _members(admin: Admin, group_ids: Sequence[str]) -> dict[str, int]:
    described = describe_consumer_groups(admin, group_ids)
    return {name: len(each.members) for name, each in described.items() if not isinstance(each, Refused)}


def _row(listing: GroupListing, lag: GroupLag | None) -> GroupRow:
    return GroupRow(
        listing.group_id,
        listing.type,
        listing.protocol_type,
        listing.state,
        None if lag is None else lag.total_lag,
        None if lag is None else lag.max_lag_seconds,
        None if lag is None else lag.status.name,
    )


def _matches(row: GroupRow, query: GroupQuery) -> bool:
    return (
        query.search.casefold() in row.group_id.casefold()
        and query.state in ("", row.state)
        and query.type in ("", row.type)
        and query.status in ("", row.status)
    )


def _number(value: float | None) -> float:
    return -1 if value is None else value


_SORTED_BY: Final[Mapping[SortKey, Callable[[GroupRow], Any]]] = {
    SortKey.GROUP: lambda row: row.group_id,
    SortKey.TYPE: lambda row: row.type,
    SortKey.STATE: lambda row: row.state,
    SortKey.STATUS: lambda row: Status.NOTFOUND if row.status is None else Status[row.status],
    SortKey.LAG: lambda row: _number(row.total_lag),
    SortKey.LAG_SECONDS: lambda row: _number(row.max_lag_seconds),
}
"""The sort key of a row. Unknown values are the lowest."""
