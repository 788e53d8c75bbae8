"""Commits as most are, on a shorter way: one partition, no metadata, and the record is committed when it is appended.

Two such requests of one member differ in their numbers alone: correlation id, offset, leader epoch. So one is read and
answered on the way of all requests; what its other bytes mean is remembered with them, and so is the answer. The next
one with the same bytes is known by them, and takes the same steps, but without a message, a ticket or a decision being
made. Whatever is not as it was then (the group refuses, a transaction is under way, the log takes no record, another
replica has to have it first) goes the way of all requests, which says what is to be done.
"""

import struct
import time
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.connection import Buffers, Connection
from kaspar.broker.handlers import Response
from kaspar.groups.frequent_commit import FrequentCommit
from kaspar.metadata import TopicImage
from kaspar.protocol import codec
from kaspar.protocol.headers import SIZE_BYTES, RequestHeader, start_response
from kaspar.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic, OffsetCommitResponse
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

REMEMBERED: Final = 4096

_FIRST_FLEXIBLE: Final = 8
_FIRST_WITH_TOPIC_ID: Final = 10
_KEY_AND_VERSION: Final = 4
_CORRELATION_ID = struct.Struct(">i")
_NAMES_FROM: Final = _KEY_AND_VERSION + _CORRELATION_ID.size
_SIZE_AND_CORRELATION_ID = struct.Struct(">ii")
# What a request ends with: offset, leader epoch, no metadata, and the tagged fields of partition, topic and request,
# which are none. Metadata that is null is the same as metadata that is empty.
_NUMBERS = struct.Struct(">qiI")
_EMPTY, _NULL = 0x0100_0000, 0


class _Form:
    """What requests with the same bytes but for their numbers have in common."""

    __slots__ = ("answer", "answer_size", "client_id", "commit", "topic", "version")

    def __init__(self, header: RequestHeader, commit: FrequentCommit, topic: TopicImage, response: Message) -> None:
        self.version = header.api_version
        self.client_id = header.client_id
        self.commit = commit
        self.topic = topic
        answer = start_response(header.api_key, header.api_version, 0)
        codec.write_into(answer, response, header.api_version)
        self.answer = bytes(answer[_SIZE_AND_CORRELATION_ID.size :])
        self.answer_size = len(answer) - SIZE_BYTES


class FrequentCommits:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._metrics = broker.metrics.requests.of("OffsetCommit")
        self._forms: dict[bytes, _Form] = {}

    def handle(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | None:
        """None if it is no such commit, or cannot be carried out like this; then nothing has been done."""
        names_end = end - _NUMBERS.size
        if names_end <= start + _NAMES_FROM:
            return None
        form = self._forms.get(_names(buffer, start, names_end))
        if form is None:
            return None
        offset, leader_epoch, ending = _NUMBERS.unpack_from(buffer, names_end)
        broker, commit = self._broker, form.commit
        if ending not in (_EMPTY, _NULL) or broker.image.topics.get(commit.topic) is not form.topic:
            return None
        if not broker.groups.runtime.try_at_once(
            commit.group_id, lambda shard, now: shard.commit_at_once(commit, offset, leader_epoch, now)
        ):
            return None
        connection.client_id = form.client_id
        (correlation_id,) = _CORRELATION_ID.unpack_from(buffer, start + _KEY_AND_VERSION)
        self._metrics.errors[ErrorCode.NONE] += 1
        self._metrics.inline(form.version, time.perf_counter() - received, end - start)
        return (_SIZE_AND_CORRELATION_ID.pack(form.answer_size, correlation_id) + form.answer,)

    def remember(self, frame: memoryview, header: RequestHeader, request: Message, response: Response) -> None:
        """A request has been answered so. If it is such a commit, the next one is known by it."""
        assert isinstance(request, OffsetCommitRequest)
        assert isinstance(response, OffsetCommitResponse)
        version = header.api_version
        if version < _FIRST_FLEXIBLE or len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
            return
        named = request.topics[0]
        if named.partitions[0].committed_metadata or response.topics[0].partitions[0].error_code != ErrorCode.NONE:
            return
        image = self._broker.image
        by_id = version >= _FIRST_WITH_TOPIC_ID
        topic = image.topic_by_id(named.topic_id) if by_id else image.topics.get(named.name)
        if topic is None:
            return
        names = _names(frame, 0, len(frame) - _NUMBERS.size)
        known = self._forms.get(names)
        if known is not None and known.topic is topic:
            return  # it is such a commit, and something stood in its way
        if frame[header.body_position :] != codec.write(request, version):
            return  # tagged fields, which nobody knows
        full = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=named.partitions)
        if known is None and len(self._forms) >= REMEMBERED:
            del self._forms[next(iter(self._forms))]
        self._forms[names] = _Form(header, FrequentCommit(request, full, version), topic, response)


def _names(buffer: bytearray | memoryview, start: int, end: int) -> bytes:
    """All of a request but its numbers: the API and its version, the client, the group, the member, the partition."""
    return bytes(buffer[start : start + _KEY_AND_VERSION]) + buffer[start + _NAMES_FROM : end]
