"""Recognizes offset commits of one partition without metadata by their bytes (network/recognition.py).

This saves decoding the request, and encoding its record and its response. If anything differs (the group or the log
refuses, another replica has to have the record first), the request falls back to the normal path, with no side effects.
"""

import struct
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.groups.offsets.commits import SingleCommit
from kaspar.metadata import TopicImage
from kaspar.metadata.images import ImageSource
from kaspar.network.outgoing import Buffers
from kaspar.network.recognition import HandledRequest, KnownRequest
from kaspar.protocol import codec
from kaspar.protocol.headers import SIZE_BYTES, RequestHeader, start_response
from kaspar.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic, OffsetCommitResponse
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.coordination.groups import Groups

MAX_KNOWN: Final = 64
"""For each connection. Consumers that commit partition by partition have few of them."""

_FIRST_FLEXIBLE: Final = 8
_FIRST_WITH_TOPIC_ID: Final = 10
_KEY_AND_VERSION: Final = 4
_CORRELATION_ID = struct.Struct(">i")
_NAMES_FROM: Final = _KEY_AND_VERSION + _CORRELATION_ID.size
_SIZE_AND_CORRELATION_ID = struct.Struct(">ii")
# The end of a request: offset, leader epoch, no metadata, and the tagged fields of partition, topic and request, of
# which there are none. Null metadata is the same as empty metadata.
_NUMBERS = struct.Struct(">qiI")
_EMPTY, _NULL = 0x0100_0000, 0


class _Form:
    """The common part of requests that differ only in their numbers."""

    __slots__ = ("client_id", "commit", "response", "response_size", "topic", "version")

    def __init__(self, header: RequestHeader, commit: SingleCommit, topic: TopicImage, response: Message) -> None:
        self.version = header.api_version
        self.client_id = header.client_id
        self.commit = commit
        self.topic = topic
        encoded = start_response(header.api_key, header.api_version, 0)
        codec.write_into(encoded, response, header.api_version)
        self.response = bytes(encoded[_SIZE_AND_CORRELATION_ID.size :])
        self.response_size = len(encoded) - SIZE_BYTES


class KnownCommits:
    """The recognized commits of one connection."""

    __slots__ = ("_forms", "_found", "_groups", "_images")

    def __init__(self, images: ImageSource, groups: "Groups") -> None:
        self._images = images
        self._groups = groups
        self._forms: dict[bytes, _Form] = {}
        self._found: _Form | None = None
        """The form that `matches` has found."""

    @property
    def version(self) -> int:
        assert self._found is not None
        return self._found.version

    @property
    def client_id(self) -> str | None:
        assert self._found is not None
        return self._found.client_id

    def matches(self, buffer: bytes | bytearray, start: int, end: int) -> bool:
        names_end = end - _NUMBERS.size
        self._found = self._forms.get(_names(buffer, start, names_end)) if names_end > start + _NAMES_FROM else None
        return self._found is not None

    def handle(self, buffer: bytearray, start: int, end: int) -> Buffers | None:
        form = self._found
        assert form is not None
        offset, leader_epoch, ending = _NUMBERS.unpack_from(buffer, end - _NUMBERS.size)
        commit = form.commit
        if ending not in (_EMPTY, _NULL) or self._images.current.topics.get(commit.topic) is not form.topic:
            return None
        commit.offset, commit.leader_epoch = offset, leader_epoch
        if self._groups.runtime.try_now(commit.group_id, lambda shard, now: shard.commit(commit, now)) is None:
            return None
        (correlation_id,) = _CORRELATION_ID.unpack_from(buffer, start + _KEY_AND_VERSION)
        return (_SIZE_AND_CORRELATION_ID.pack(form.response_size, correlation_id) + form.response,)

    def knows(self, names: bytes, topic: TopicImage) -> bool:
        form = self._forms.get(names)
        return form is not None and form.topic is topic

    def add(self, names: bytes, form: _Form) -> None:
        if names not in self._forms and len(self._forms) >= MAX_KNOWN:
            del self._forms[next(iter(self._forms))]
        self._forms[names] = form


class CommitRecognizer:
    def __init__(self, images: ImageSource, groups: "Groups") -> None:
        self._images = images
        self._groups = groups

    def learn(self, known: KnownRequest | None, handled: HandledRequest) -> KnownRequest | None:
        _, frame, header, request, response, _ = handled
        assert isinstance(request, OffsetCommitRequest)
        assert isinstance(response, OffsetCommitResponse)
        version = header.api_version
        topic = self._single_topic(request, response, version)
        if topic is None:
            return known
        names = _names(frame, 0, len(frame) - _NUMBERS.size)
        if not isinstance(known, KnownCommits):
            known = KnownCommits(self._images, self._groups)
        # A form that is known already failed to handle this request for another reason. With tagged fields, which are
        # unknown here, the numbers would not be at the expected position.
        if not known.knows(names, topic) and frame[header.body_position :] == codec.write(request, version):
            partitions = request.topics[0].partitions
            full = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
            known.add(names, _Form(header, SingleCommit(request, full, version, response), topic, response))
        return known

    def _single_topic(
        self, request: OffsetCommitRequest, response: OffsetCommitResponse, version: int
    ) -> TopicImage | None:
        """The topic of a successful commit of one partition without metadata; None for other commits."""
        if version < _FIRST_FLEXIBLE or len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
            return None
        named = request.topics[0]
        if named.partitions[0].committed_metadata or response.topics[0].partitions[0].error_code != ErrorCode.NONE:
            return None
        image = self._images.current
        by_id = version >= _FIRST_WITH_TOPIC_ID
        return image.topic_by_id(named.topic_id) if by_id else image.topics.get(named.name)


def _names(buffer: bytes | bytearray | memoryview, start: int, end: int) -> bytes:
    """All of a request but its numbers: the API and its version, the client, the group, the member, the partition."""
    return bytes(buffer[start : start + _KEY_AND_VERSION]) + buffer[start + _NAMES_FROM : end]
