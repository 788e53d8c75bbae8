"""Connections to changelogs that are opened only when needed: most of the time the state is on disk."""

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
        """`topics` are the changelog topics by store name."""
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
