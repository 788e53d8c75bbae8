"""Reads changelog topics: committed records of a range of offsets.

A header of some records, `kaspar.meta`, has the stream times and other numbers of the batch that wrote them.
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
    """The changelog has lost records after the offset from which it was to be read."""


class ChangelogReader(Protocol):
    def read(self, store: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Record]]:
        """The committed records from the one offset to below the other, in order, some at a time.

        Offset 0 stands for the beginning of the changelog, wherever that is today. Raises ChangelogTruncated if the
        records do not begin at another `from_offset`, and another KasparError or an OSError if `to_offset` is not
        reached in time.
        """


def meta_header(meta: Mapping[str, int]) -> tuple[str, bytes]:
    """The header for the last record that a batch writes to a changelog."""
    return META_HEADER, msgspec.msgpack.encode(dict(meta))


def meta_of(headers: Sequence[tuple[str, bytes | None]]) -> dict[str, int]:
    """What a record's headers say; nothing if it has no such header, or one that cannot be read."""
    for name, data in headers:
        if name == META_HEADER and data is not None:
            try:
                return _decode_meta(data)
            except msgspec.DecodeError as error:
                _log.warning("ignored a header of a changelog record", header=name, reason=error)
    return {}


class ChangelogTopics:
    """A ChangelogReader over the wire. The client's timeout limits how long the last stable offset is waited for."""

    def __init__(self, client: Client, topics: Mapping[str, str]) -> None:
        """`topics` are the changelogs by the names of their stores."""
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
