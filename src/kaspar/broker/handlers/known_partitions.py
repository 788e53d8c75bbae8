"""Offsets can only be committed and deleted for partitions that exist. Shared by the handlers of those requests."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from kaspar.metadata import TopicImage


class NamesPartition(Protocol):
    @property
    def partition_index(self) -> int: ...


P = TypeVar("P", bound=NamesPartition)


def split_by_existence(topic: TopicImage, partitions: Iterable[P]) -> tuple[tuple[P, ...], tuple[P, ...]]:
    """The partitions that the topic has, and those that it does not have."""
    count = len(topic.partitions)
    known: list[P] = []
    unknown: list[P] = []
    for partition in partitions:
        (known if 0 <= partition.partition_index < count else unknown).append(partition)
    return tuple(known), tuple(unknown)
