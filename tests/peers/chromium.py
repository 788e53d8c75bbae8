"""Debian's Chromium, driven by Playwright."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.peers.debian import not_found, require_packages

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_PROGRAM: Final = "/usr/bin/chromium"
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
)


@contextmanager
def chromium() -> "Iterator[Browser]":
    """Raises ToolMissingError where it cannot be installed."""
    from playwright.sync_api import sync_playwright

    require_packages(["chromium"], lambda: not_found([_PROGRAM]))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_PROGRAM, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()
