"""Pictures of every view, light and dark, for the desktop and for a phone: `make screenshots`."""

import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page

from kaspar.pipelines.folder import Folder
from tests.browser.administration.test_pipelines import hosted, word_count
from tests.browser.console import Console, running_console
from tests.browser.sample import fill, register
from tests.peers.chromium import chromium

FOLDER: Final = Path(__file__).parents[2] / "docs/images/console"
_SIZES: Final = {"desktop": (1280, 800), "phone": (390, 800)}
_MORE: Final = {
    "topic": "#/topics/orders",
    "topic-settings": "#/topics/orders?tab=settings",
    "messages-of-a-topic": "#/messages/orders",
    "dead-letters": "#/messages/orders.dlq",
    "group": "#/groups/reporting",
    "transaction": "#/transactions/checkout",
    "pipeline": "#/pipelines/word-count",
    "schema": "#/schemas/orders-value?against=1",
    "broker": "#/brokers/1",
    "broker-log-dirs": "#/brokers/1?tab=log-dirs",
}
"""Pages inside of views, by the names of their pictures."""


def views(page: Page) -> dict[str, str]:
    """The addresses of all views in the navigation."""
    links = page.locator("nav[aria-label=Views] a").evaluate_all("links => links.map(each => each.hash)")
    return {link.removeprefix("#/") or "overview": link for link in links}


def take(browser: Browser, console: Console, folder: Path, only: str = "") -> None:
    for size, (width, height) in _SIZES.items():
        context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
        page = context.new_page()
        console.open(page)
        page.wait_for_selector(".plot canvas")
        for theme in ("light", "dark"):
            page.evaluate(f"localStorage.setItem('kaspar.theme', '{theme}')")
            page.reload()
            page.wait_for_selector("nav[aria-label=Views] a[href='#/schemas']", state="attached")
            for name, address in {**views(page), **_MORE}.items():
                if only in name:
                    console.open(page, address)
                    page.wait_for_load_state("load")
                    page.wait_for_function("() => !document.querySelector('.loading')")
                    page.wait_for_timeout(400)  # charts and fonts
                    page.screenshot(path=folder / f"{name}-{theme}-{size}.png")
        context.close()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as pipelines,
        hosted(Folder(Path(pipelines)), word_count()),
        running_console(settings={"kaspar.console.pipelines.folder": pipelines}, registry=True) as console,
        chromium() as browser,
    ):
        fill(console.broker.bootstrap_servers)
        register(console.broker.registry_url)
        take(browser, console, folder, sys.argv[2] if len(sys.argv) > 2 else "")


if __name__ == "__main__":
    main()
