"""A page in Chromium, and how long things take in it."""

import contextlib
from collections.abc import Iterator
from typing import Final

from playwright.sync_api import Browser, Error, Page

from bench.console.visits import Visit
from bench.programs import LoadError

_PATIENCE_MS: Final = 30_000

HELPERS: Final = """
    const main = () => document.querySelector("main");
    const has = (selector) => main()?.querySelector(selector) != null;
    const title = () => main()?.querySelector("h1")?.textContent;
    const isComplete = (heading, selector) =>
        (!heading || title() === heading) && has(selector) && !has(".loading") && !main().textContent.includes("Loading…");
    const rows = () => main().querySelectorAll("tbody tr[data-row]");
    const rowCount = () => rows().length;
    const firstRow = () => rows()[0]?.textContent.replace(/^[▸▾ ]+/, "") ?? "";
    const click = (selector) => document.querySelector(selector).click();
    const clickText = (selector, text) =>
        [...main().querySelectorAll(selector)].find((each) => each.textContent.includes(text)).click();
    const type = (label, text) => {
        const field = main().querySelector(`[aria-label="${label}"]`);
        field.value = text;
        field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    };
    const until = async (isSo) => {
        const deadline = performance.now() + %d;
        while (!isSo()) {
            if (performance.now() > deadline) throw new Error(`not shown: ${title()}`);
            await new Promise(requestAnimationFrame);
        }
    };
""" % (_PATIENCE_MS - 5_000)

_FIRST: Final = "async () => { %s await until(() => isComplete('Overview', '.figures')); return performance.now(); }"
_VISIT: Final = """async () => {
    %s
    const before = firstRow();
    const started = performance.now();
    %s;
    await until(() => %s);
    return performance.now() - started;
}"""
_READY: Final = "async () => { %s await until(() => %s); }"


class ConsolePage:
    """Raises LoadError."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._url = url

    def open(self) -> float:
        """Milliseconds from the start of the navigation until the overview is there with its figures."""
        with _failing("the overview"):
            self._page.goto(f"{self._url}/#/", wait_until="commit")
            return float(self._page.evaluate(_FIRST % HELPERS))

    def reload(self) -> float:
        """As `open`, with the page's files in the browser's cache."""
        with _failing("the overview"):
            self._page.reload(wait_until="commit")
            return float(self._page.evaluate(_FIRST % HELPERS))

    def visit(self, visit: Visit) -> float:
        """Milliseconds from the click until a frame has what must be shown."""
        with _failing(visit.title):
            self._page.evaluate("(address) => { location.hash = '#/nothing'; location.hash = address; }", visit.begins_at)
            self._page.evaluate(_READY % (HELPERS, visit.is_ready))
            return float(self._page.evaluate(_VISIT % (HELPERS, visit.act, visit.shown)))


@contextlib.contextmanager
def new_page(browser: Browser, url: str) -> Iterator[ConsolePage]:
    """In a window that has loaded nothing yet."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(_PATIENCE_MS)
    try:
        yield ConsolePage(context.new_page(), url)
    finally:
        context.close()


@contextlib.contextmanager
def _failing(what: str) -> Iterator[None]:
    try:
        yield
    except Error as problem:
        raise LoadError(f"{what}: {problem}") from None
