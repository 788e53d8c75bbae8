"""The requests of group members as most are, on a shorter way: they join again, ask for their assignment, live.

A member asks for the same again and again, and what it says differs in its correlation id and its generation or epoch
alone. So its connection remembers its last request of each kind: the bytes, and what they mean. The next one with the
same bytes is known by them: it is not read, no handler is asked, and of its answer only what differs is written. The
rules are those of all members (`groups/classic_at_once.py`, `groups/consumer_at_once.py`). Whatever needs more than
these goes the way of all requests, as if nothing had been.
"""

import struct
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.broker.connection import Buffers, Connection
from kaspar.broker.coordination.tickets import RequestTicket
from kaspar.broker.handlers import Response
from kaspar.broker.handlers.group_client import host_of
from kaspar.broker.handlers.join_group import as_of_version, join
from kaspar.broker.responses import Delayed, encode_response
from kaspar.groups.classic_answers import sync_refused
from kaspar.groups.classic_member import protocols_by_name
from kaspar.groups.consumer_at_once import PlainHeartbeat, says_nothing
from kaspar.groups.group import Client
from kaspar.protocol import codec
from kaspar.protocol.core import wire
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

LARGEST: Final = 8192
"""What is larger is not remembered: ten thousand members have ten thousand connections."""

_KEY_AND_VERSION: Final = 4
_NUMBER = struct.Struct(">i")
_NAMES_FROM: Final = _KEY_AND_VERSION + _NUMBER.size
_SIZE_AND_CORRELATION_ID = struct.Struct(">ii")
_CODE = struct.Struct(">h")
_EPOCH_AND_INTERVAL = struct.Struct(">ii")
_MARK: Final = "what the answer is about"
_CODE_MARK: Final = 0x0102
_MARKS: Final = (0x0102_0304, 0x0506_0708)


class FrequentMembers:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._joined = _JoinedAnswers()

    def remember(
        self, connection: Connection, frame: memoryview, header: RequestHeader, request: Message, answer: object
    ) -> None:
        """A member's request has been taken. The next one with its bytes is known by it."""
        key = header.api_key
        known = connection.known.get(key)
        if (
            len(frame) > LARGEST
            or (known is not None and known.is_it(bytes(frame), 0, len(frame)))
            or getattr(answer, "error_code", ErrorCode.NONE) != ErrorCode.NONE
            or frame[header.body_position :] != codec.write(request, header.api_version)  # tagged fields
        ):
            return
        match request:
            case JoinGroupRequest() if request.member_id:
                client = Client(header.client_id or "", host_of(connection.peer), header.api_version, ZERO_UUID)
                connection.known[key] = _Join(self._broker, frame, header, request, client, self._joined)
            case SyncGroupRequest() if not request.assignments:
                connection.known[key] = _Sync(self._broker, frame, header, request)
            case HeartbeatRequest():
                connection.known[key] = _Heartbeat(self._broker, frame, header, request)
            case ConsumerGroupHeartbeatRequest() if says_nothing(request):
                heartbeat = PlainHeartbeat(
                    request.group_id, request.member_id, header.client_id or "", host_of(connection.peer)
                )
                connection.known[key] = _ConsumerHeartbeat(self._broker, frame, header, heartbeat)


class _Known:
    """The bytes of a request but for its correlation id and the number at `number_at`, which may be behind its end."""

    __slots__ = ("_after", "_before", "_broker", "_client_id", "_key", "_metrics", "_number_at", "_size", "_version")

    def __init__(self, broker: "Broker", frame: memoryview, header: RequestHeader, name: str, number_at: int) -> None:
        self._broker = broker
        self._metrics = broker.metrics.requests.of(name)
        self._version = header.api_version
        self._client_id = header.client_id
        self._size = len(frame)
        self._key = bytes(frame[:_KEY_AND_VERSION])
        self._before = bytes(frame[_NAMES_FROM:number_at])
        self._after = bytes(frame[number_at + _NUMBER.size :])
        self._number_at = number_at

    def is_it(self, buffer: bytes | bytearray, start: int, end: int) -> bool:
        return (
            end - start == self._size
            and buffer.startswith(self._before, start + _NAMES_FROM, end)
            and buffer.endswith(self._after, start, end)
            and buffer.startswith(self._key, start, end)
        )

    def _number(self, buffer: bytearray, start: int) -> int:
        number: int = _NUMBER.unpack_from(buffer, start + self._number_at)[0]
        return number

    def _answered(self, connection: Connection, start: int, end: int, received: float, error_code: int = 0) -> None:
        connection.client_id = self._client_id
        self._metrics.errors[error_code] += 1
        self._metrics.inline(self._version, time.perf_counter() - received, end - start)

    def _delayed(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float, ticket: RequestTicket
    ) -> Delayed:
        connection.client_id = self._client_id
        correlation_id = _correlation_id(buffer, start)
        delayed = Delayed(connection, self._metrics, self._version, correlation_id, received, end - start, self._encode)
        connection.line_up(delayed)
        ticket.when_answered(delayed.answered)
        return delayed

    def _encode(self, version: int, correlation_id: int, response: Response) -> Buffers:
        """The answer that was waited for. There may be a shorter way to it."""
        return encode_response(version, correlation_id, response)


class _Join(_Known):
    __slots__ = ("_client", "_joined", "_member_id", "_protocols", "_request")

    def __init__(
        self,
        broker: "Broker",
        frame: memoryview,
        header: RequestHeader,
        request: JoinGroupRequest,
        client: Client,
        joined: "_JoinedAnswers",
    ) -> None:
        super().__init__(broker, frame, header, "JoinGroup", len(frame))
        self._request = request
        self._client = client
        self._protocols = protocols_by_name(request.protocols)
        self._member_id = _written(request.member_id, request, header)
        self._joined = joined

    def again(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Delayed:
        answer = join(self._broker, self._request, self._protocols, self._client)
        if isinstance(answer, RequestTicket):
            return self._delayed(connection, buffer, start, end, received, answer)
        assert isinstance(answer, JoinGroupResponse)
        response = self._encode(self._version, _correlation_id(buffer, start), answer)
        self._answered(connection, start, end, received, answer.error_code)
        return response

    def _encode(self, version: int, correlation_id: int, response: Response) -> Buffers:
        assert isinstance(response, JoinGroupResponse)
        form = self._joined.form(version, response)
        if form is None or response.member_id != self._request.member_id:
            return encode_response(version, correlation_id, as_of_version(version, response))
        return form.fill(correlation_id, self._member_id)


class _Sync(_Known):
    __slots__ = ("_flexible", "_form", "_request")

    def __init__(self, broker: "Broker", frame: memoryview, header: RequestHeader, request: SyncGroupRequest) -> None:
        group_id = _written(request.group_id, request, header)
        super().__init__(broker, frame, header, "SyncGroup", header.body_position + len(group_id))
        self._request = request
        self._flexible = codec.is_flexible(type(request), header.api_version)
        mark = _MARK.encode()
        sample = SyncGroupResponse(
            protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=mark
        )
        self._form = _Form(header.api_version, sample, codec.array_length(len(mark), self._flexible) + mark)

    def again(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Delayed | None:
        request, generation_id = self._request, self._number(buffer, start)
        runtime = self._broker.groups.runtime
        shard = runtime.settled_shard_of(request.group_id)
        assignment = None if shard is None else shard.assignment_at_once(request, generation_id)
        if assignment is not None:
            response = self._form.fill(_correlation_id(buffer, start), self._bytes(assignment))
            self._answered(connection, start, end, received)
            return response
        ticket = runtime.wait_at_once(
            request.group_id,
            lambda shard, ticket: shard.await_assignment(request, generation_id, ticket),
            sync_refused,
        )
        return None if ticket is None else self._delayed(connection, buffer, start, end, received, ticket)

    def _encode(self, version: int, correlation_id: int, response: Response) -> Buffers:
        assert isinstance(response, SyncGroupResponse)
        if response.error_code != ErrorCode.NONE:
            return encode_response(version, correlation_id, response)
        return self._form.fill(correlation_id, self._bytes(response.assignment))

    def _bytes(self, assignment: bytes) -> bytes:
        return codec.array_length(len(assignment), self._flexible) + assignment


class _Heartbeat(_Known):
    __slots__ = ("_form", "_request")

    def __init__(self, broker: "Broker", frame: memoryview, header: RequestHeader, request: HeartbeatRequest) -> None:
        group_id = _written(request.group_id, request, header)
        super().__init__(broker, frame, header, "Heartbeat", header.body_position + len(group_id))
        self._request = request
        self._form = _Form(header.api_version, HeartbeatResponse(error_code=_CODE_MARK), _CODE.pack(_CODE_MARK))

    def again(self, connection: Connection, buffer: bytearray, start: int, end: int, received: float) -> Buffers | None:
        request, generation_id = self._request, self._number(buffer, start)
        broker = self._broker
        try:
            shard = broker.groups.runtime.shard_of(request.group_id)
            response = shard.heartbeat_at_once(request, generation_id, broker.now())
        except Refused:
            return None
        if response is None:
            return None
        self._answered(connection, start, end, received, response.error_code)
        return self._form.fill(_correlation_id(buffer, start), _CODE.pack(response.error_code))


class _ConsumerHeartbeat(_Known):
    __slots__ = ("_form", "_heartbeat")

    def __init__(self, broker: "Broker", frame: memoryview, header: RequestHeader, heartbeat: PlainHeartbeat) -> None:
        names = _string(heartbeat.group_id, True) + _string(heartbeat.member_id, True)
        super().__init__(broker, frame, header, "ConsumerGroupHeartbeat", header.body_position + len(names))
        self._heartbeat = heartbeat
        epoch, interval_ms = _MARKS
        sample = ConsumerGroupHeartbeatResponse(
            member_id=heartbeat.member_id, member_epoch=epoch, heartbeat_interval_ms=interval_ms
        )
        self._form = _Form(header.api_version, sample, _EPOCH_AND_INTERVAL.pack(*_MARKS))

    def again(self, connection: Connection, buffer: bytearray, start: int, end: int, received: float) -> Buffers | None:
        heartbeat, epoch, groups = self._heartbeat, self._number(buffer, start), self._broker.groups
        group_id = heartbeat.group_id
        shard = groups.runtime.settled_shard_of(group_id) if groups.serves_consumer_protocol else None
        if shard is None:
            return None
        target_epoch = shard.assignment_epoch(group_id)
        if epoch != target_epoch:
            if not groups.runtime.try_at_once(group_id, lambda shard, now: shard.move_on(heartbeat, epoch, now)):
                return None
        elif not shard.live_on(heartbeat, epoch, self._broker.now()):
            return None
        told = _EPOCH_AND_INTERVAL.pack(target_epoch, shard.surroundings.heartbeat_interval_ms(group_id))
        self._answered(connection, start, end, received)
        return self._form.fill(_correlation_id(buffer, start), told)


class _Form:
    """Answers that are the same but for their correlation id and one value: what is before and behind it."""

    __slots__ = ("_after", "_before", "_size")

    def __init__(self, version: int, sample: Message, written: bytes) -> None:
        """`written` is that value in the sample, of which nothing else that looks like it comes behind it."""
        (frame,) = encode_response(version, 0, sample)
        assert isinstance(frame, bytearray)
        self._before, _, self._after = bytes(frame[_SIZE_AND_CORRELATION_ID.size :]).rpartition(written)
        self._size = _NUMBER.size + len(self._before) + len(self._after)

    def fill(self, correlation_id: int, written: bytes) -> Buffers:
        start = _SIZE_AND_CORRELATION_ID.pack(self._size + len(written), correlation_id)
        return (b"".join((start, self._before, written, self._after)),)


class _JoinedAnswers:
    """What those are told who do not lead, when all have joined: the same for all of a generation but for their ids."""

    __slots__ = ("_about", "_form")

    def __init__(self) -> None:
        self._about: tuple[object, ...] = ()
        self._form: _Form | None = None

    def form(self, version: int, response: JoinGroupResponse) -> _Form | None:
        """None: this is none of those."""
        if response.error_code != ErrorCode.NONE or response.members or response.skip_assignment:
            return None
        about = (response.leader, response.generation_id, response.protocol_name, response.protocol_type, version)
        if about != self._about:
            self._about = about
            flexible = codec.is_flexible(type(response), version)
            self._form = _Form(version, replace(response, member_id=_MARK), _string(_MARK, flexible))
        return self._form


def _correlation_id(buffer: bytearray, start: int) -> int:
    correlation_id: int = _NUMBER.unpack_from(buffer, start + _KEY_AND_VERSION)[0]
    return correlation_id


def _written(text: str, request: Message, header: RequestHeader) -> bytes:
    return _string(text, codec.is_flexible(type(request), header.api_version))


def _string(text: str, flexible: bool) -> bytes:
    out = bytearray()
    wire.write_string(out, text, flexible)
    return bytes(out)
