"""The cases: the first view, all other views, actions in them, and the cost of open pages."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

from playwright.sync_api import Browser

from bench.console import visits
from bench.console.browser import new_page
from bench.console.cluster import LargeCluster
from bench.console.contents import Contents
from bench.console.open_pages import open_pages
from bench.console.visits import Visits
from bench.meters import cpu_seconds, resident_bytes
from bench.rows import Better, Row
from bench.up.case import OURS, Program

_FIRST_VIEW_MS: Final = 1_000
_ANY_VIEW_MS: Final = 300
_PAGES: Final = (0, 1, 100)
_SETTLE_S: Final = 12.0
"""The time after pages were opened for their first requests and a round of the monitor."""
_MORE_FOR_MANY: Final = 5.0
"""How much more of a core (in percent) a hundred pages may cost the broker than one page."""
_MB: Final = 1e6


@dataclass(slots=True)
class ConsoleBench:
    cluster: LargeCluster
    browser: Browser
    scale: float = 1.0
    rounds_begun: int = 0


class ConsoleCase(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def sides(self) -> Sequence[Program]: ...

    rows: tuple[Row, ...]

    def measure(self, bench: ConsoleBench) -> Mapping[str, float]:
        """Return the values of its rows."""


class FirstView:
    """Loads the page in a window with an empty cache, and again in that window."""

    name = "first"
    sides = (OURS,)

    def __init__(self) -> None:
        section = "The first view, from the start of the navigation to the overview with its figures"
        self.rows: tuple[Row, ...] = (
            Row("first_cold", "nothing in the cache", section, "ms", Better.LESS, _FIRST_VIEW_MS, goal_is_value=True),
            Row("first_again", "loaded again", section, "ms", Better.LESS, _FIRST_VIEW_MS, goal_is_value=True),
        )

    def measure(self, bench: ConsoleBench) -> Mapping[str, float]:
        with new_page(bench.browser, bench.cluster.console_url) as page:
            return {"first_cold": page.open(), "first_again": page.reload()}


class VisitsCase:
    """Each round has a new window, so that the files of each view are loaded in it."""

    sides = (OURS,)

    def __init__(self, name: str, section: str, of_round: Visits) -> None:
        self.name = name
        self._of_round = of_round
        any_contents = Contents(1, 1, 1, 1)
        self.rows: tuple[Row, ...] = tuple(
            Row(each.name, each.title, section, "ms", Better.LESS, _ANY_VIEW_MS, goal_is_value=True)
            for each in of_round(any_contents, 0)
        )

    def measure(self, bench: ConsoleBench) -> Mapping[str, float]:
        bench.rounds_begun += 1
        planned = self._of_round(bench.cluster.contents, bench.rounds_begun)
        with new_page(bench.browser, bench.cluster.console_url) as page:
            page.open()
            return {visit.name: page.visit(visit) for visit in planned}


class OpenPages:
    """CPU of the broker and of the process with all services while pages are open without any user action."""

    name = "pages"
    sides = (OURS,)

    def __init__(self) -> None:
        section = "Open pages"
        many = {0: "no page", 1: "one page", 100: "100 pages"}

        def row(name: str, title: str, unit: str) -> Row:
            return Row(name, title, section, unit, Better.LESS)

        self.rows: tuple[Row, ...] = (
            *(row(f"broker_{count}", f"broker, {many[count]}", "% of a core") for count in _PAGES),
            Row(
                "broker_more",
                "broker, 100 pages more than one",
                section,
                "% of a core",
                Better.LESS,
                _MORE_FOR_MANY,
                goal_is_value=True,
            ),
            *(row(f"services_{count}", f"services, {many[count]}", "% of a core") for count in _PAGES),
            row("services_memory", "resident memory of the services after that", "MB"),
        )

    def measure(self, bench: ConsoleBench) -> Mapping[str, float]:
        values: dict[str, float] = {}
        with ThreadPoolExecutor(1) as thread:  # this thread already runs Playwright's event loop
            for count in _PAGES:
                values |= thread.submit(asyncio.run, _cpu(bench, count)).result()
        values["broker_more"] = values["broker_100"] - values["broker_1"]
        return values | {"services_memory": resident_bytes(bench.cluster.services_pid) / _MB}


async def _cpu(bench: ConsoleBench, count: int) -> dict[str, float]:
    """The CPU that broker and services use with this number of open pages, in percent of a core."""
    cluster = bench.cluster
    pids = {"broker": cluster.broker_pid, "services": cluster.services_pid}
    async with open_pages(cluster.console_url, count, cluster.contents):
        await asyncio.sleep(_SETTLE_S)
        before, began = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic()
        await asyncio.sleep(60.0 * bench.scale)
        took_s = time.monotonic() - began
        return {f"{name}_{count}": 100 * (cpu_seconds(pid) - before[name]) / took_s for name, pid in pids.items()}


def all_cases() -> list[ConsoleCase]:
    return [
        FirstView(),
        VisitsCase("views", "Views, from the click to their content", visits.views),
        VisitsCase("topics", "Topics", visits.topics),
        VisitsCase("groups", "Groups, a broker, a schema", visits.groups_and_more),
        VisitsCase("messages", "Messages of the big topic", visits.messages),
        OpenPages(),
    ]
