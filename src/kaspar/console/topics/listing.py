"""The list of topics. All are described with one request. Sizes and offsets are read only for the topics on the page,
unless the list is sorted by size."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Self

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
    """A part of the name; case-insensitive."""
    include_internal: bool = False
    only_trouble: bool = False
    """Whether to list only topics with a partition that is under-replicated or has no leader."""
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
    """The number of under-replicated partitions."""
    offline: int
    """The number of partitions without a leader."""
    size: int | None = None
    """The bytes of the leaders' replicas; None if they are not known."""
    records: int | None = None
    """The number of offsets between the start and end of its logs, which is at least the number of records."""


@dataclass(frozen=True, slots=True)
class TopicPage:
    rows: tuple[TopicRow, ...]
    matching: int
    total: int
    internal: int
    """The number of internal topics among all."""


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """All topics that a caller may describe, and their rows in the list, sorted by name."""

    by_name: Mapping[str, TopicDescription]
    rows: tuple[TopicRow, ...]

    @classmethod
    def of(cls, topics: Iterable[TopicDescription]) -> Self:
        by_name = {each.name: each for each in topics}
        return cls(by_name, tuple(_row(by_name[name]) for name in sorted(by_name)))


def read_topics(admin: Admin) -> KnownTopics:
    """The topics that the caller may describe. Raises Refused."""
    described = describe_topics_by_metadata(admin)
    return KnownTopics.of(each for each in described.values() if isinstance(each, TopicDescription))


def read_sizes(admin: Admin, topics: Iterable[TopicDescription]) -> dict[str, int]:
    """The sizes of the topics for whose partitions all sizes are known."""
    listed = list(topics)
    sizes = partition_sizes(admin, listed)
    return {
        topic.name: sum(sizes[where] for where in _partitions(topic))
        for topic in listed
        if all(where in sizes for where in _partitions(topic))
    }


def read_records(admin: Admin, topics: Iterable[TopicDescription]) -> dict[str, int]:
    """The numbers of records of the topics whose leaders all respond."""
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


def select(topics: KnownTopics, query: TopicQuery, sizes: Mapping[str, int] | None = None) -> TopicPage:
    """The requested page. `sizes` are needed only to sort by them."""
    matching = [row for row in topics.rows if _matches(row, query)]
    if query.sort is SortKey.SIZE:
        known = sizes or {}
        matching.sort(key=lambda row: known.get(row.name, -1), reverse=query.descending)
    elif query.sort is not SortKey.NAME:
        matching.sort(key=_SORTED_BY[query.sort], reverse=query.descending)
    elif query.descending:
        matching.reverse()
    return TopicPage(
        tuple(matching[query.offset : query.offset + query.limit]),
        len(matching),
        len(topics.rows),
        sum(row.is_internal for row in topics.rows),
    )


def with_figures(admin: Admin, page: TopicPage, topics: KnownTopics) -> TopicPage:
    """The page with the sizes and numbers of records of its topics."""
    shown = [topics.by_name[row.name] for row in page.rows]
    sizes, records = read_sizes(admin, shown), read_records(admin, shown)
    rows = (replace(row, size=sizes.get(row.name), records=records.get(row.name)) for row in page.rows)
    return replace(page, rows=tuple(rows))


def _row(topic: TopicDescription) -> TopicRow:
    return TopicRow(
        topic.name,
        topic.is_internal,
        len(topic.partitions),
        max((len(each.replicas) for each in topic.partitions), default=0),
        sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
        sum(each.leader < 0 for each in topic.partitions),
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
}
