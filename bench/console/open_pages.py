"""Open pages as the console sees them: each has a stream of events, and repeats the requests of its view. This needs no
browser; a hundred of them would need the whole machine."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

import httpx

from bench.console.contents import Contents
from bench.programs import LoadError

_SESSION_EVERY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class View:
    """The events that a view watches, and the request that it repeats at an interval."""

    watched: tuple[str, ...]
    asked: str = ""
    every_s: float = 0.0


def kinds_of_pages(contents: Contents) -> Sequence[View]:
    """The views of ten pages: four show the overview, and the others lists, one topic, and one group."""
    lists = {"offset": 0, "limit": 50, "descending": "false"}
    topics = View(("cluster",), f"/api/topics?{urlencode({'sort': 'name', **lists})}", 5.0)
    groups = View(("cluster",), f"/api/groups?{urlencode({'sort': 'group', **lists})}", 5.0)
    topic = View(("cluster",), f"/api/topics/{contents.topic(1)}", 3.0)
    group = View(("cluster", f"group:{contents.group(1)}"), f"/api/groups/{contents.group(1)}", 5.0)
    overview = View(("cluster", "findings", "overview", "rates"))
    return (overview, topics, groups, topic, overview, group, overview, topics, overview, groups)


@contextlib.asynccontextmanager
async def open_pages(url: str, count: int, contents: Contents) -> AsyncIterator[None]:
    """Keep pages open in this context. Raises LoadError if the console refuses one, or ends a stream."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30, limits=limits) as client:
        views = itertools.islice(itertools.cycle(kinds_of_pages(contents)), count)
        tasks = [asyncio.create_task(task) for view in views for task in _page(client, view)]
        try:
            yield
            if ended := next((task for task in tasks if task.done()), None):
                raise LoadError(f"a page has ended: {ended.exception()!r}")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _page(client: httpx.AsyncClient, view: View) -> Iterator[Coroutine[None, None, None]]:
    yield _watch(client, view.watched)
    yield _ask(client, "/api/session", _SESSION_EVERY_S)
    if view.asked:
        yield _ask(client, view.asked, view.every_s)


async def _watch(client: httpx.AsyncClient, topics: Sequence[str]) -> None:
    query = "&".join(f"topic={quote(topic)}" for topic in topics)
    async with client.stream("GET", f"/api/events?{query}", timeout=httpx.Timeout(30)) as response:
        response.raise_for_status()
        async for _ in response.aiter_raw():
            pass


async def _ask(client: httpx.AsyncClient, path: str, every_s: float) -> None:
    while True:
        (await client.get(path)).raise_for_status()
        await asyncio.sleep(every_s)
