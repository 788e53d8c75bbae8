"""Whether views fit a phone."""

from typing import Final

from playwright.sync_api import Page, expect

from tests.browser.console import Console

WIDTH: Final = 360


def check_fits_a_phone(page: Page, console: Console, *addresses: str) -> None:
    """Nothing in these views is wider than the window, once they have loaded."""
    page.set_viewport_size({"width": WIDTH, "height": 700})
    for address in addresses:
        console.open(page, address)
        expect(page.locator(".loading")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH, address
