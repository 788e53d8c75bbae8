"""A page in Chromium, and the time that actions take in it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Error, Page

from bench.console.visits import Visit
from bench.programs import LoadError

_HELPERS: Final = Path(__file__).with_name("page.js")
_PATIENCE_MS: Final = 30_000
_FIRST: Final = "async () => { await until(() => isComplete('Overview', '.figures')); return performance.now(); }"
_BEGIN: Final = """async () => {{
    location.hash = "#/nothing";
    await until(() => title() === "Not found");
    location.hash = "{at}";
    await until(() => {is_ready});
}}"""
_VISIT: Final = """async () => {{
    const before = firstRow();
    const started = performance.now();
    {act};
    await until(() => {shown});
    return performance.now() - started;
}}"""


class ConsolePage:
    """The console in a browser. Methods raise LoadError."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._url = url

    def open(self) -> float:
        """Open the page. Returns the milliseconds from the start of navigation until the overview shows its figures."""
        with _failing("the overview"):
            self._page.goto(f"{self._url}/#/", wait_until="commit")
            return float(self._page.evaluate(_FIRST))

    def reload(self) -> float:
        """Like `open`, but with the page's files in the browser's cache."""
        with _failing("the overview"):
            self._page.reload(wait_until="commit")
            return float(self._page.evaluate(_FIRST))

    def visit(self, visit: Visit) -> float:
        """The milliseconds from the click until a frame contains what must be shown."""
        with _failing(visit.title):
            self._page.evaluate(_BEGIN.format(at=visit.begins_at, is_ready=visit.is_ready))
            return float(self._page.evaluate(_VISIT.format(act=visit.act, shown=visit.shown)))


@contextlib.contextmanager
def new_page(browser: Browser, url: str) -> Iterator[ConsolePage]:
    """A page in a window that has not loaded anything yet."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    try:
        context.set_default_timeout(_PATIENCE_MS)
        context.add_init_script(path=_HELPERS)
        yield ConsolePage(context.new_page(), url)
    finally:
        context.close()


@contextlib.contextmanager
def _failing(what: str) -> Iterator[None]:
    try:
        yield
    except Error as problem:
        raise LoadError(f"{what}: {problem}") from None
