"""The list of topics. All are described with one request; sizes and offsets are read only of those that are shown,
unless the list is sorted by size."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.offsets import OffsetSpec, list_offsets
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription, describe_topics_by_metadata
from kaspar.client.offsets import ListedOffset
from kaspar.console.topics.sizes import partition_sizes


class SortKey(StrEnum):
    NAME = "name"
    PARTITIONS = "partitions"
    REPLICATION_FACTOR = "replication_factor"
    UNDER_REPLICATED = "under_replicated"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class TopicQuery:
    search: str = ""
    """A part of the name; upper and lower case are the same."""
    include_internal: bool = False
    only_trouble: bool = False
    """Only those with a partition that is under-replicated or has no leader."""
    sort: SortKey = SortKey.NAME
    descending: bool = False
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class TopicRow:
    name: str
    is_internal: bool
    partitions: int
    replication_factor: int
    under_replicated: int
    """How many of its partitions."""
    offline: int
    """How many have no leader."""
    size: int | None = None
    """Bytes of the leaders' replicas; None if they are not known."""
    records: int | None = None
    """Offsets from the start of its logs to their ends: at least as many as there are records."""


@dataclass(frozen=True, slots=True)
class TopicPage:
    rows: tuple[TopicRow, ...]
    matching: int
    total: int
    internal: int
    """How many of all are internal."""


Topics = Mapping[str, TopicDescription]


def read_topics(admin: Admin) -> Topics:
    """All that the caller may describe. Raises Refused."""
    described = describe_topics_by_metadata(admin)
    return {name: each for name, each in described.items() if isinstance(each, TopicDescription)}


def read_sizes(admin: Admin, topics: Iterable[TopicDescription]) -> dict[str, int]:
    """Of topics whose partitions all have a size."""
    listed = list(topics)
    sizes = partition_sizes(admin, listed)
    return {
        topic.name: sum(sizes[where] for where in _partitions(topic))
        for topic in listed
        if all(where in sizes for where in _partitions(topic))
    }


def read_records(admin: Admin, topics: Iterable[TopicDescription]) -> dict[str, int]:
    """Of topics all of whose leaders respond."""
    led = [topic for topic in topics if all(each.leader >= 0 for each in topic.partitions)]
    partitions = [where for topic in led for where in _partitions(topic)]
    first = list_offsets(admin, dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    last = list_offsets(admin, dict.fromkeys(partitions, OffsetSpec.LATEST))
    records: dict[str, int] = {}
    for topic in led:
        pairs = [(first[where], last[where]) for where in _partitions(topic)]
        counts = [
            end.offset - start.offset
            for start, end in pairs
            if isinstance(start, ListedOffset) and isinstance(end, ListedOffset)
        ]
        if len(counts) == len(pairs):
            records[topic.name] = sum(counts)
    return records


def _partitions(topic: TopicDescription) -> list[TopicPartition]:
    return [TopicPartition(topic.name, each.partition) for each in topic.partitions]


def select(topics: Topics, query: TopicQuery, sizes: Mapping[str, int] | None = None) -> TopicPage:
    """The page that was asked for. `sizes` are needed to sort by them."""
    rows = [_row(each, (sizes or {}).get(each.name)) for each in topics.values()]
    matching = sorted((row for row in rows if _matches(row, query)), key=lambda row: row.name)
    if query.sort is not SortKey.NAME:
        matching.sort(key=_SORTED_BY[query.sort], reverse=query.descending)
    elif query.descending:
        matching.reverse()
    return TopicPage(
        tuple(matching[query.offset : query.offset + query.limit]),
        len(matching),
        len(rows),
        sum(row.is_internal for row in rows),
    )


def with_figures(admin: Admin, page: TopicPage, topics: Topics) -> TopicPage:
    """With the sizes and records of its rows."""
    shown = [topics[row.name] for row in page.rows]
    sizes, records = read_sizes(admin, shown), read_records(admin, shown)
    rows = (replace(row, size=sizes.get(row.name), records=records.get(row.name)) for row in page.rows)
    return replace(page, rows=tuple(rows))


def _row(topic: TopicDescription, size: int | None) -> TopicRow:
    return TopicRow(
        topic.name,
        topic.is_internal,
        len(topic.partitions),
        max((len(each.replicas) for each in topic.partitions), default=0),
        sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
        sum(each.leader < 0 for each in topic.partitions),
        size,
    )


def _matches(row: TopicRow, query: TopicQuery) -> bool:
    return (
        query.search.lower() in row.name.lower()
        and (query.include_internal or not row.is_internal)
        and (not query.only_trouble or row.under_replicated + row.offline > 0)
    )


_SORTED_BY: Final[Mapping[SortKey, Callable[[TopicRow], Any]]] = {
    SortKey.PARTITIONS: lambda row: row.partitions,
    SortKey.REPLICATION_FACTOR: lambda row: row.replication_factor,
    SortKey.UNDER_REPLICATED: lambda row: (row.offline, row.under_replicated),
    SortKey.SIZE: lambda row: -1 if row.size is None else row.size,
}
