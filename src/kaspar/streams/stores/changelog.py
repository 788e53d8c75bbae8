"""Reads changelog topics: the committed records of a range of offsets.

Some records have a header, `kaspar.meta`, with the stream times and other numbers of the batch that wrote them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.client import Client
from kaspar.client.fetching import OffsetGone, fetch_ahead
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.records import Record, iter_visible

META_HEADER: Final = "kaspar.meta"

_log = get_log(__name__)
_decode_meta = msgspec.msgpack.Decoder(dict[str, int]).decode


class ChangelogTruncated(KasparError):
    """The changelog has lost records after the offset at which the read starts."""


class ChangelogReader(Protocol):
    def read(self, store: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Record]]:
        """The committed records from `from_offset` (inclusive) to `to_offset` (exclusive), in order, in chunks.

        Offset 0 means the current beginning of the changelog. Raises ChangelogTruncated if the log starts after any
        other `from_offset`, and another KasparError or an OSError if `to_offset` is not reached in time.
        """


def meta_header(meta: Mapping[str, int]) -> tuple[str, bytes]:
    """The header for the last record that a batch writes to a changelog."""
    return META_HEADER, msgspec.msgpack.encode(dict(meta))


def meta_of(headers: Sequence[tuple[str, bytes | None]]) -> dict[str, int]:
    """The numbers in a record's headers; empty if there is no such header, or if it cannot be decoded."""
    for name, data in headers:
        if name == META_HEADER and data is not None:
            try:
                return _decode_meta(data)
            except msgspec.DecodeError as error:
                _log.warning("ignored a header of a changelog record", header=name, reason=error)
    return {}


class ChangelogTopics:
    """A ChangelogReader that uses a client. The client's timeout limits the wait for the last stable offset."""

    def __init__(self, client: Client, topics: Mapping[str, str]) -> None:
        """`topics` are the changelog topics by store name."""
        self._client = client
        self._topics = topics

    def read(self, store: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Record]]:
        topic_partition = TopicPartition(self._topics[store], partition)
        try:
            yield from self._committed(topic_partition, from_offset, to_offset)
        except OffsetGone as gone:
            if gone.asked >= gone.log_start:
                raise
            if from_offset or gone.asked:
                raise ChangelogTruncated(str(gone)) from gone
            yield from self._committed(topic_partition, gone.log_start, to_offset)

    def _committed(self, partition: TopicPartition, start: int, until: int) -> Iterator[Sequence[Record]]:
        for fetched in fetch_ahead(self._client, partition, start, until=until, isolation_level=READ_COMMITTED):
            if records := list(iter_visible(fetched.records, fetched.aborted, start, until)):
                yield records
