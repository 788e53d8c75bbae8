"""Connections to changelogs, for those who find their state on disk most of the time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kaspar.spark.kafka_settings import ConnectionSettings
from kaspar.streams.stores.changelog import ChangelogTopics

if TYPE_CHECKING:
    from kaspar.client import Client
    from kaspar.records import Record


class LazyReader:
    """A ChangelogReader that connects when it is first used."""

    def __init__(self, topics: Mapping[str, str], connection: ConnectionSettings) -> None:
        """`topics` are the changelogs by the names of their stores."""
        self._topics = topics
        self._connection = connection
        self._client: Client | None = None

    def read(self, store: str, partition: int, from_offset: int, to_offset: int) -> "Iterator[Sequence[Record]]":
        if self._client is None:
            self._client = self._connection.client()
        return ChangelogTopics(self._client, self._topics).read(store, partition, from_offset, to_offset)

    def __enter__(self) -> "LazyReader":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._client is not None:
            self._client.close()
