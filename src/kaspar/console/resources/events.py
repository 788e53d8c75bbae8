"""Live updates for open pages: one stream for each page, with the topics that it names.

    GET /api/events?topic=overview&topic=group:billing

The monitor's rounds happen once for all pages. After each, a page gets those of its topics that have changed.
"""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from kaspar.console.http.endpoint import Call, Channel, Endpoint, encode
from kaspar.console.http.errors import CallFailed, failure_of
from kaspar.console.http.events import Event, EventStream
from kaspar.console.problems import Unacceptable

_MOST_TOPICS: Final = 20
_AS_IN_THE_PAGE: Final = "!'()*"
"""The characters that encodeURIComponent does not quote. Names of events are quoted, because the name of a group may
have line breaks, which would be lines of the stream."""


def events_endpoint(channels: Iterable[Channel], *, max_pages: int) -> Endpoint:
    pages = _Pages({channel.name: channel for channel in channels}, max_pages)
    return Endpoint("GET", "/api/events", pages.open)


class _Pages:
    """The streams of all pages that are open."""

    def __init__(self, channels: Mapping[str, Channel], most: int) -> None:
        self._channels = channels
        self._most = most
        self._open = 0

    async def open(self, call: Call) -> Response:
        topics = call.texts("topic")
        if len(topics) > _MOST_TOPICS:
            raise Unacceptable(f"A page can watch at most {_MOST_TOPICS} topics.")
        watched = [(topic, *self._channel(topic)) for topic in topics]
        return await EventStream.opened(self._page(call, watched))

    @contextlib.asynccontextmanager
    async def _page(
        self, call: Call, watched: Sequence[tuple[str, Channel, str]]
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """The events of one page. It is counted from the start, because many pages may be opened at once."""
        if self._open >= self._most:
            raise CallFailed(503, f"Too many open pages: kaspar.console.max.pages is {self._most}.")
        self._open += 1
        try:
            yield self._events(call, watched)
        finally:
            self._open -= 1

    def _channel(self, topic: str) -> tuple[Channel, str]:
        name, _, argument = topic.partition(":")
        if name not in self._channels:
            raise Unacceptable(f"Unknown subscription {name!r}.")
        return self._channels[name], argument

    async def _events(self, call: Call, watched: Sequence[tuple[str, Channel, str]]) -> AsyncIterator[Event]:
        last: dict[str, bytes] = {}
        async with call.context.monitor.subscribe() as rounds:
            while True:
                for topic, channel, argument in watched:
                    data = await _read(call, channel, argument)
                    if (encoded := encode(data)) != last.get(topic):
                        last[topic] = encoded
                        yield Event(quote(topic, safe=_AS_IN_THE_PAGE), data)
                await anext(rounds)


async def _read(call: Call, channel: Channel, argument: str) -> Mapping[str, Any]:
    """The data of an event: the value, or the problem as the API would report it."""
    try:
        return {"value": await channel.read(call, argument)}
    except Exception as problem:
        failure = failure_of(problem, call.who)
        if failure is None:
            raise
        return {"problem": {"message": str(failure), "code": failure.code}}
