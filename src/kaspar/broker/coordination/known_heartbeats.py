"""Recognizes heartbeats of the consumer protocol (KIP-848) by their bytes (network/recognition.py): those that differ
from the last heartbeat of their member only in the member epoch.

This saves decoding the request and, if the response has no assignment, encoding it. Requests that join, leave, wait or
are refused fall back to the normal path, with no side effects.
"""

import struct
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.clients import DescribesOf, client_of_header
from kaspar.groups.consumer.member import JOINS
from kaspar.groups.group import GroupClient
from kaspar.network.outgoing import Buffers
from kaspar.network.recognition import HandledRequest, KnownRequest
from kaspar.network.responses import encode_response
from kaspar.protocol import codec
from kaspar.protocol.codec import compact_string
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from kaspar.broker.coordination.groups import Groups

MAX_BYTES: Final = 8192
"""Larger requests are not remembered: ten thousand members have ten thousand connections."""

_KEY_AND_VERSION: Final = 4
_NUMBER = struct.Struct(">i")
_NAMES_FROM: Final = _KEY_AND_VERSION + _NUMBER.size
_SIZE_AND_CORRELATION_ID = struct.Struct(">ii")
_EPOCH_AND_INTERVAL = struct.Struct(">ii")
_NO_ASSIGNMENT: Final = b"\xff\x00"
"""What follows epoch and interval in a response without an assignment: null, and no tagged fields."""


class KnownHeartbeat:
    """The heartbeat of one member: its bytes without the correlation id and the member epoch. In its response without
    an assignment, only these and the heartbeat interval can change.
    """

    __slots__ = (
        "_after",
        "_before",
        "_client",
        "_epoch_at",
        "_groups",
        "_key",
        "_request",
        "_response_size",
        "_response_start",
        "_size",
        "client_id",
        "version",
    )

    def __init__(
        self,
        groups: "Groups",
        frame: memoryview,
        header: RequestHeader,
        client: GroupClient,
        request: ConsumerGroupHeartbeatRequest,
    ) -> None:
        self.version = header.api_version
        self.client_id = header.client_id
        self._groups = groups
        self._client = client
        self._request = request
        names = compact_string(request.group_id) + compact_string(request.member_id)
        self._epoch_at = header.body_position + len(names)
        self._size = len(frame)
        self._key = bytes(frame[:_KEY_AND_VERSION])
        self._before = bytes(frame[_NAMES_FROM : self._epoch_at])
        self._after = bytes(frame[self._epoch_at + _NUMBER.size :])
        self._response_start = _start_of_response(self.version, request.member_id)
        numbers = _NUMBER.size + _EPOCH_AND_INTERVAL.size
        self._response_size = numbers + len(self._response_start) + len(_NO_ASSIGNMENT)

    def matches(self, buffer: bytes | bytearray, start: int, end: int) -> bool:
        return (
            end - start == self._size
            and buffer.startswith(self._before, start + _NAMES_FROM, end)
            and buffer.endswith(self._after, start, end)
            and buffer.startswith(self._key, start, end)
        )

    def handle(self, buffer: bytearray, start: int, end: int) -> Buffers | None:
        request, client, groups = self._request, self._client, self._groups
        epoch: int = _NUMBER.unpack_from(buffer, start + self._epoch_at)[0]
        if epoch != request.member_epoch:
            if epoch <= JOINS:
                return None  # other rules apply to such a request
            request = self._request = _at_epoch(request, epoch)
        if not groups.serves_consumer_protocol:
            return None
        response = groups.runtime.try_now(
            request.group_id, lambda shard, now: shard.consumer_heartbeat(request, client, now)
        )
        if response is None:
            return None
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        correlation_id: int = _NUMBER.unpack_from(buffer, start + _KEY_AND_VERSION)[0]
        if response.assignment is not None:
            return encode_response(self.version, correlation_id, response)
        numbers = _EPOCH_AND_INTERVAL.pack(response.member_epoch, response.heartbeat_interval_ms)
        begins = _SIZE_AND_CORRELATION_ID.pack(self._response_size, correlation_id)
        return (b"".join((begins, self._response_start, numbers, _NO_ASSIGNMENT)),)


class HeartbeatRecognizer:
    def __init__(self, groups: "Groups", describes_of: DescribesOf | None = None) -> None:
        self._groups = groups
        self._describes_of = describes_of

    def learn(self, known: KnownRequest | None, handled: HandledRequest) -> KnownRequest | None:
        peer, frame, header, request, response, principal = handled
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        if (
            len(frame) > MAX_BYTES
            or response.error_code != ErrorCode.NONE
            or not _comes_again(request)
            or (known is not None and known.matches(bytes(frame), 0, len(frame)))
            or frame[header.body_position :] != codec.write(request, header.api_version)  # tagged fields
        ):
            return known
        client = client_of_header(header, peer, principal, self._describes_of)
        return KnownHeartbeat(self._groups, frame, header, client, request)


def _comes_again(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether later requests of the member are like this one. Subscriptions, the assignor and owned partitions are only
    sent when they have changed; a request without them is also valid at the member's next epoch.
    """
    return (
        request.member_epoch > JOINS
        and request.topic_partitions is None
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
    )


def _at_epoch(request: ConsumerGroupHeartbeatRequest, epoch: int) -> ConsumerGroupHeartbeatRequest:
    """The same request at another epoch. Fields that it does not have (`_comes_again`) get their defaults.
    `dataclasses.replace` takes twice as long.
    """
    return ConsumerGroupHeartbeatRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_partitions=None,
    )


def _start_of_response(version: int, member_id: str) -> bytes:
    """The bytes between the correlation id and the member epoch, in a response without an assignment."""
    response = ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=0, heartbeat_interval_ms=0)
    (encoded,) = encode_response(version, 0, response)
    assert isinstance(encoded, bytearray)
    ends_with = bytes(_EPOCH_AND_INTERVAL.size) + _NO_ASSIGNMENT
    assert encoded.endswith(ends_with)
    return bytes(encoded[_SIZE_AND_CORRELATION_ID.size : -len(ends_with)])
