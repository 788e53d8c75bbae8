"""The records of a topic: pages of them, single records, the end of the topic, and writing."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeVar

import msgspec
from starlette.responses import Response

from kaspar.client.admin.session import Admin
from kaspar.console.context import ConsoleContext
from kaspar.console.http.endpoint import Call, Endpoint, changes, reads
from kaspar.console.http.errors import CallFailed
from kaspar.console.http.events import Event, EventStream
from kaspar.console.messages.contents import Format
from kaspar.console.messages.filters import Filter
from kaspar.console.messages.producing import NewRecord, produce
from kaspar.console.messages.reading.positions import (
    Direction,
    End,
    parse_cursor,
    parse_offset,
    parse_partitions,
    parse_position,
)
from kaspar.console.messages.reading.scanning import Budget, Query
from kaspar.console.messages.replaying import Replay, count_letters, read_one, replay_letters, replay_one
from kaspar.console.messages.searching import Search, matcher
from kaspar.console.messages.tailing import SHOWN_PER_SECOND, TailEvent, TailKey, Tails
from kaspar.console.messages.views import Decoding, RecordView
from kaspar.console.problems import Conflict, NotThere, Unacceptable

_MOST_RECORDS: Final = 500
_SEARCHES: Final = 6
"""The maximum number of concurrent searches. They use the processor, and the console has other requests to serve."""
_ISOLATION: Final = {"read_uncommitted": False, "read_committed": True}

_Result = TypeVar("_Result")


class LetterReplay(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a request that replays many dead letters: one step, from one cursor to another."""

    start: str
    until: str
    filter: str = ""
    keep_timestamp: bool = True


def record_endpoints() -> tuple[Endpoint, ...]:
    """The endpoints for one console: its searches have a common limit, and its pages share tails."""
    records = _Records()
    topic = "/api/topics/{topic}"
    one = f"{topic}/records/{{partition}}/{{offset}}"
    return (
        reads(f"{topic}/records")(records.page),
        reads(one)(records.one),
        reads(f"{one}/{{part}}")(records.download),
        reads(f"{topic}/tail")(records.tail),
        reads(f"{topic}/dead-letters")(records.count_letters),
        changes("POST", f"{topic}/records", action="produce record", resource="topic {topic}")(records.produce),
        changes("POST", f"{topic}/replays", action="replay record", resource="topic {topic}")(records.replay),
        changes("POST", f"{topic}/dead-letters", action="replay dead letters", resource="topic {topic}")(
            records.replay_letters
        ),
    )


class _Records:
    def __init__(self) -> None:
        self._searches = asyncio.Semaphore(_SEARCHES)
        self._tails: Tails | None = None

    async def page(self, call: Call) -> dict[str, Any]:
        search = Search(_query(call), _decoding(call), call.text("filter"), call.context.clock.now_ms())
        Filter(search.filter, now_ms=search.now_ms)  # report an error in the filter without connecting to a broker
        what = ("records", call.path["topic"], call.request.scope["query_string"])
        return await call.context.reads.get(
            (call.identity, what), lambda: self._search(call, lambda admin: search.run(admin.client))
        )

    async def one(self, call: Call) -> dict[str, Any]:
        decoding = _decoding(call)
        partition, offset = call.path_number("partition"), parse_offset(call.path["offset"])

        def read(admin: Admin) -> dict[str, Any]:
            return RecordView(read_one(admin.client, call.path["topic"], partition, offset), decoding).whole()

        return await call.ask(read)

    async def download(self, call: Call) -> Response:
        """The bytes of a key or value, unchanged. Browsers store them as a file, whatever their content."""
        topic, part = call.path["topic"], call.path["part"]
        partition, offset = call.path_number("partition"), parse_offset(call.path["offset"])
        if part not in ("key", "value"):
            raise NotThere(f"The part must be key or value, not {part}.")
        stored = await call.ask(lambda admin: read_one(admin.client, topic, partition, offset))
        data = stored.record.key if part == "key" else stored.record.value
        if data is None:
            raise NotThere(f"The record has no {part}.")
        name = re.sub(r"[^A-Za-z0-9._-]", "_", f"{topic}-{partition}-{offset}-{part}.bin")
        headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
        return Response(data, media_type="application/octet-stream", headers=headers)

    async def tail(self, call: Call) -> Response:
        key = TailKey(
            call.identity,
            call.path["topic"],
            parse_partitions(call.text("partitions")),
            call.text("filter").strip(),
            _is_committed(call),
            call.choice("key", Format.AUTO),
            call.choice("value", Format.AUTO),
        )
        Filter(key.filter, now_ms=0)  # an error in the filter must be a response, not an event
        tails = self._tails_of(call.context)
        try:
            return await EventStream.opened(_following(tails, key))
        except Conflict as full:
            raise CallFailed(503, str(full)) from None

    def _tails_of(self, context: ConsoleContext) -> Tails:
        if self._tails is None:
            self._tails = Tails(
                context.sessions.call,
                lambda key: Decoding(
                    Format(key.key_format), Format(key.value_format), context.registries.of(key.identity)
                ),
            )
        return self._tails

    # --- writing ------------------------------------------------------------------------------------------------------

    async def produce(self, call: Call) -> dict[str, Any]:
        new, topic = await call.body(NewRecord), call.path["topic"]
        registry = call.context.registries.of(call.identity)
        written = await call.ask(lambda admin: produce(admin.client, topic, new, registry))
        call.note(f"partition {written.partition}, offset {written.offset}")
        return {"topic": topic, **msgspec.to_builtins(written)}

    async def replay(self, call: Call) -> dict[str, Any]:
        replay, topic = await call.body(Replay), call.path["topic"]
        call.note(f"partition {replay.partition}, offset {replay.offset}")
        to, written = await call.ask(lambda admin: replay_one(admin.client, topic, replay))
        call.note(f"to {to}, partition {written.partition}, offset {written.offset}")
        return {"topic": to, **msgspec.to_builtins(written)}

    async def count_letters(self, call: Call) -> dict[str, Any]:
        start, until = call.text("start"), call.text("until")
        matches = matcher(call.text("filter"), _decoding(call), now_ms=call.context.clock.now_ms())
        counted = await self._search(
            call,
            lambda admin: count_letters(
                admin.client,
                call.path["topic"],
                parse_cursor(start) if start else None,
                parse_cursor(until) if until else None,
                matches,
            ),
        )
        return {
            "found": counted.found,
            "scanned": counted.scanned,
            "start": str(counted.start),
            "position": str(counted.position),
            "until": str(counted.until),
            "done": counted.is_done,
        }

    async def replay_letters(self, call: Call) -> dict[str, Any]:
        body = await call.body(LetterReplay)
        call.note(f"from {body.start[:200]} to {body.until[:200]}" + (f", filter {body.filter}" if body.filter else ""))
        matches = matcher(body.filter, _decoding(call), now_ms=call.context.clock.now_ms())
        start, until = parse_cursor(body.start), parse_cursor(body.until)
        step = await self._search(
            call,
            lambda admin: replay_letters(
                admin.client, call.path["topic"], start, until, matches, keep_timestamp=body.keep_timestamp
            ),
        )
        call.note(f"{step.replayed} replayed" + (f", then: {step.problem}" if step.problem else ""))
        return {
            "replayed": step.replayed,
            "scanned": step.scanned,
            "position": str(step.position),
            "done": step.is_done,
            "problem": step.problem,
        }

    async def _search(self, call: Call, function: Callable[[Admin], _Result]) -> _Result:
        async with self._searches:
            return await call.ask(function)


@contextlib.asynccontextmanager
async def _following(tails: Tails, key: TailKey) -> AsyncIterator[AsyncIterator[Event]]:
    """Raises Conflict."""
    async with tails.follow(key) as tail:
        yield _events_of(tail)


async def _events_of(tail: AsyncIterator[TailEvent]) -> AsyncIterator[Event]:
    yield Event("limit", {"shown_per_second": SHOWN_PER_SECOND})
    async for event in tail:
        yield Event("records", event)


def _query(call: Call) -> Query:
    position = parse_position(call.text("at", "newest"))
    default = Direction.BACKWARD if position is End.NEWEST else Direction.FORWARD
    return Query(
        call.path["topic"],
        position,
        call.choice("direction", default),
        Budget(call.number("limit", 50, least=1, most=_MOST_RECORDS)),
        parse_partitions(call.text("partitions")),
        is_committed=_is_committed(call),
        with_markers=call.flag("markers"),
    )


def _decoding(call: Call) -> Decoding:
    registry = call.context.registries.of(call.identity)
    return Decoding(call.choice("key", Format.AUTO), call.choice("value", Format.AUTO), registry)


def _is_committed(call: Call) -> bool:
    isolation = call.text("isolation", "read_uncommitted")
    if isolation not in _ISOLATION:
        raise Unacceptable(f"isolation must be one of {', '.join(_ISOLATION)}.")
    return _ISOLATION[isolation]
