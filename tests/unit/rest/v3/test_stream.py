"""A stream of records without a broker or a socket: what is read, when, and what is sent."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.exceptions import HTTPException

from kaspar.callers.identities import SERVICE, Identity
from kaspar.rest.errors import KAFKA_RETRIABLE, TOO_MANY_REQUESTS, RestError
from kaspar.rest.http import BodyBudget
from kaspar.rest.producing import Delivered, Outcome, OutgoingRecord, Undelivered
from kaspar.rest.v3.endpoint import Call
from kaspar.rest.v3.producing.stream import RecordStream
from kaspar.web.turns import Turns
from tests.unit.rest.test_batch import in_event_loop

WAIT_S = 5.0
LIMIT = 10_000
BUDGET = 50_000


class Producers:
    """Accepts everything; records are delivered when the test says so."""

    def __init__(self) -> None:
        self.submitted: list[OutgoingRecord] = []
        self.may_deliver = asyncio.Event()
        self.refusal: RestError | None = None
        self.undelivered: dict[bytes | None, Undelivered] = {}

    async def submit(
        self, identity: Identity, topic: str, records: Sequence[OutgoingRecord]
    ) -> Callable[[], Awaitable[list[Outcome]]]:
        if self.refusal is not None:
            raise self.refusal
        first = len(self.submitted)
        self.submitted += records

        async def wait() -> list[Outcome]:
            await self.may_deliver.wait()
            return [
                self.undelivered.get(record.value, Delivered(0, first + place, None))
                for place, record in enumerate(records)
            ]

        return wait


class Client:
    """The other end of the connection."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.pieces: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.received = 0
        self.status: int | None = None
        self.text = b""
        self.is_complete = False
        self.changed = asyncio.Event()
        self.can_read = asyncio.Event()
        self.can_read.set()
        settings = SimpleNamespace(kaspar_http_max_body_bytes=LIMIT)
        self.bodies = BodyBudget(BUDGET)
        context = SimpleNamespace(
            config=SimpleNamespace(settings=settings),
            producers=self.producers,
            bodies=self.bodies,
            schemas=SimpleNamespace(encoding=lambda: None),
            turns=Turns(),
            registration=lambda identity, topic: None,
        )
        call = SimpleNamespace(context=context, topic="t", cluster_id="c", identity=SERVICE)
        self._stream = RecordStream(cast(Call, call))

    def send(self, *pieces: bytes | Exception | None) -> None:
        """None is the end of the body."""
        for piece in pieces:
            self.pieces.put_nowait(piece)

    def start(self) -> "asyncio.Task[None]":
        return asyncio.create_task(self._stream({"type": "http"}, self._receive, self._send))

    @property
    def answers(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.split(b"\r\n") if line]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def _receive(self) -> Any:
        piece = await self.pieces.get()
        self.received += 1
        self.changed.set()
        if isinstance(piece, ConnectionError):
            return {"type": "http.disconnect"}
        if isinstance(piece, Exception):
            raise piece
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def _send(self, message: Any) -> None:
        await self.can_read.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.text += message["body"]
            self.is_complete = not message.get("more_body", False)
        self.changed.set()


async def idle() -> None:
    """Returns when the stream waits for something from outside: it uses no threads and no time."""
    for _ in range(1000):
        await asyncio.sleep(0)


def record(number: int) -> bytes:
    return b'{"value":{"type":"JSON","data":%d}}' % number


@in_event_loop
async def test_each_record_is_answered_before_the_next_is_sent() -> None:
    client = Client()
    client.producers.may_deliver.set()
    stream = client.start()
    for number in range(3):
        client.send(record(number))
        await client.until(lambda expected=number + 1: len(client.answers) == expected)  # type: ignore[misc]
    assert (client.is_complete, client.status) == (False, 200)
    client.send(None)
    await stream
    assert client.is_complete
    assert [each["offset"] for each in client.answers] == [0, 1, 2]


@in_event_loop
async def test_a_record_in_pieces_is_written_when_it_is_complete() -> None:
    client = Client()
    client.producers.may_deliver.set()
    stream = client.start()
    client.send(record(0) + record(1)[:20])
    await client.until(lambda: len(client.answers) == 1)
    assert len(client.producers.submitted) == 1
    client.send(record(1)[20:], None)
    await stream
    assert len(client.answers) == 2


@in_event_loop
async def test_nothing_more_is_read_while_records_wait_for_brokers() -> None:
    client = Client()
    stream = client.start()
    pieces = 50
    client.send(*(record(number) for number in range(pieces)))
    await idle()
    read = client.received
    assert 0 < read < 10
    assert len(client.producers.submitted) == read
    assert client.status is None
    client.producers.may_deliver.set()
    client.send(None)
    await stream
    assert [each["offset"] for each in client.answers] == list(range(pieces))


@in_event_loop
async def test_nothing_more_is_read_while_the_client_does_not_read() -> None:
    client = Client()
    client.producers.may_deliver.set()
    client.can_read.clear()
    stream = client.start()
    client.send(*(record(number) for number in range(50)))
    await idle()
    assert client.received < 10
    client.can_read.set()
    client.send(None)
    await stream
    assert len(client.answers) == 50


@in_event_loop
async def test_many_small_records_in_one_piece_are_submitted_in_bounded_groups() -> None:
    client = Client()
    stream = client.start()
    client.send(b"{}" * 4000)
    await idle()
    assert 100 <= len(client.producers.submitted) <= 1000
    client.producers.may_deliver.set()
    client.send(None)
    await stream
    assert len(client.answers) == 4000


@in_event_loop
async def test_refused_records_have_errors_in_their_places() -> None:
    client = Client()
    client.producers.may_deliver.set()
    client.producers.undelivered[b"2"] = Undelivered(KAFKA_RETRIABLE, "it took too long")
    client.send(record(1), b'{"value":{"type":"BINARY","data":1}}', b'{"x":1}', record(2), b"[]", record(3), None)
    await client.start()
    assert [each["error_code"] for each in client.answers] == [200, 400, 422, 50003, 400, 200]
    assert client.status == 200


@in_event_loop
async def test_what_is_not_json_ends_the_stream_after_what_came_before() -> None:
    client = Client()
    client.producers.may_deliver.set()
    client.send(record(1) + b'{"value":}' + record(2))
    await client.start()
    assert [each["error_code"] for each in client.answers] == [200, 400]
    assert client.is_complete
    assert len(client.producers.submitted) == 1


@in_event_loop
async def test_a_body_that_ends_within_a_record() -> None:
    client = Client()
    client.producers.may_deliver.set()
    client.send(record(1), record(2)[:-1], None)
    await client.start()
    assert [each["error_code"] for each in client.answers] == [200, 400]
    assert "end-of-input" in client.answers[1]["message"]


@in_event_loop
async def test_a_record_that_is_too_large_ends_the_stream() -> None:
    client = Client()
    client.producers.may_deliver.set()
    client.send(record(1), b'{"value":"' + b"x" * LIMIT, b"x" * LIMIT)
    await client.start()
    assert [each["error_code"] for each in client.answers] == [200, 413]


@in_event_loop
async def test_without_a_record_the_request_is_refused() -> None:
    for body in (b"", b" \n"):
        client = Client()
        client.send(body, None)
        await client.start()
        assert client.status == 422
        assert client.answers == [
            {"error_code": 42206, "message": "Payload error. Null input provided. Data is required."}
        ]


@in_event_loop
async def test_a_client_that_is_gone_leaves_its_records_written_and_nothing_running() -> None:
    client = Client()
    client.send(record(1), ConnectionError())
    stream = client.start()
    await client.until(lambda: client.received == 2)
    client.producers.may_deliver.set()
    await asyncio.wait_for(stream, WAIT_S)
    assert len(client.producers.submitted) == 1


@in_event_loop
async def test_a_client_that_is_silent_for_too_long_is_told_so() -> None:
    client = Client()
    client.producers.may_deliver.set()
    client.send(record(1), HTTPException(408, "The body of the request took too long."))
    await client.start()
    assert [each["error_code"] for each in client.answers] == [200, 408]


@in_event_loop
async def test_a_producer_without_room_refuses_records_and_the_stream_goes_on() -> None:
    client = Client()
    client.producers.may_deliver.set()
    client.producers.refusal = RestError(TOO_MANY_REQUESTS, "too many")
    stream = client.start()
    client.send(record(1))
    await client.until(lambda: len(client.answers) == 1)
    client.producers.refusal = None
    client.send(record(2), None)
    await stream
    assert [each["error_code"] for each in client.answers] == [42901, 200]


@in_event_loop
async def test_what_a_stream_holds_counts_with_other_bodies_and_is_given_back() -> None:
    client = Client()
    client.producers.may_deliver.set()
    stream = client.start()
    client.send(record(1)[:10] + b" " * 5000)
    await idle()
    client.bodies.take(BUDGET - 6000)
    client.send(b" " * 3000)
    await stream
    assert [each["error_code"] for each in client.answers] == [42901]
    client.bodies.release(BUDGET - 6000)
    assert client.bodies.take(BUDGET) == BUDGET


@in_event_loop
async def test_records_on_their_way_count_until_they_are_answered() -> None:
    client = Client()
    stream = client.start()
    client.send(b'{"value":{"type":"STRING","data":"%s"}}' % (b"x" * 9000), None)
    await idle()
    with pytest.raises(RestError, match="too much memory"):
        client.bodies.take(BUDGET - 8000)
    client.producers.may_deliver.set()
    await stream
    assert client.bodies.take(BUDGET) == BUDGET


@in_event_loop
async def test_cancellation_ends_the_reader() -> None:
    client = Client()
    stream = client.start()
    client.send(record(1))
    await client.until(lambda: client.received == 1)
    before = len(asyncio.all_tasks())
    stream.cancel()
    await asyncio.wait([stream])
    assert len(asyncio.all_tasks()) < before
    assert stream.cancelled()
