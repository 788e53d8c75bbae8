"""One browser and one broker with its console for all tests of the page. They end with this package: while Playwright
runs in this thread, tests of others could not run an event loop in it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request

from tests.browser.console import Console, running_console
from tests.peers.chromium import chromium

_WAIT_MS: Final = 15_000
_WINDOW: Final = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"}
_HERE: Final = frozenset({"127.0.0.1", "localhost"})
_REFUSED: Final = re.compile(r"Failed to load resource: the server responded with a status of (\d+)")

NewPage = Callable[..., Page]


@dataclass
class Problems:
    """What a page must not do: errors, violations of its policy, requests that leave the machine."""

    found: list[str] = field(default_factory=list)
    expected: set[int] = field(default_factory=set)
    """Statuses that the test makes the API respond with."""
    loses_connection: bool = False
    """Whether the test takes the console away from the page."""

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", self._error)
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        refused = _REFUSED.search(message.text)
        if refused and int(refused[1]) in self.expected:
            return
        if self.loses_connection and "net::ERR_" in message.text:
            return
        self.found.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _error(self, error: Error) -> None:
        self.found.append(f"uncaught: {error}")

    def _request(self, request: Request) -> None:
        if urlsplit(request.url).scheme in ("http", "https") and urlsplit(request.url).hostname not in _HERE:
            self.found.append(f"a request leaves the machine: {request.url}")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="package")
def console() -> Iterator[Console]:
    with running_console(registry=True) as running:
        yield running


@pytest.fixture
def problems() -> Iterator[Problems]:
    watched = Problems()
    yield watched
    assert not watched.found, "\n".join(watched.found)


@pytest.fixture
def new_page(browser: Browser, problems: Problems) -> Iterator[NewPage]:
    """Opens a page in a window of its own, with more options of that window. The test fails for what a page must not
    do (Problems), so tests open pages in no other way."""
    contexts: list[BrowserContext] = []

    def create(**options: Any) -> Page:
        context = browser.new_context(**{**_WINDOW, **options})
        contexts.append(context)
        context.set_default_timeout(_WAIT_MS)
        opened = context.new_page()
        problems.watch(opened)
        return opened

    yield create
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_page: NewPage) -> Page:
    return new_page()
