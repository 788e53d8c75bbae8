"""`python -m bench.console`: opens every view of the console in Chromium, on a cluster with 10,000 topics and 1,000
groups, and prints how long each takes from the click until its content is there. The goal is 300 ms."""

import argparse
import statistics
import sys
from typing import Final

from playwright.sync_api import Page

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.session import Admin, raise_first
from tests.browser.console import running_console
from tests.browser.screenshots import views
from tests.peers.chromium import chromium

_GOAL_MS: Final = 300
_ROUNDS: Final = 5
_BATCH: Final = 500
_MORE: Final = {"a topic": "#/topics/topic-00001", "a topic's settings": "#/topics/topic-00001?tab=settings"}

_MEASURE: Final = """async (address) => {
    const shown = () => document.querySelector("main h1, main [role=alert]");
    const isThere = () => !document.querySelector("main .loading") && shown();
    location.hash = "#/nothing";
    await new Promise((resolve) => setTimeout(resolve, 300));
    const started = performance.now();
    location.hash = address;
    const before = document.querySelector("main h1");
    do {
        await new Promise((resolve) => requestAnimationFrame(resolve));
    } while (document.querySelector("main h1") === before || !isThere());
    return performance.now() - started;
}"""
"""Milliseconds from the change of the address until nothing of the view is loading any more."""


def fill(bootstrap_servers: str, topics: int, groups: int) -> None:
    with Admin(bootstrap_servers) as admin:
        names = [f"topic-{number:05}" for number in range(topics)]
        for first in range(0, topics, _BATCH):
            created = create_topics(admin, [NewTopic(name, 1, 1) for name in names[first : first + _BATCH]])
            raise_first(created.values())
        for number in range(groups):
            alter_group_offsets(admin, f"group-{number:04}", {TopicPartition(names[number % topics], 0): 0})


def measure(page: Page, addresses: dict[str, str], rounds: int) -> bool:
    """Prints a line for each view. Whether all are within the goal."""
    is_quick = True
    for name, address in addresses.items():
        page.evaluate(_MEASURE, address)  # its files are loaded once
        times = [page.evaluate(_MEASURE, address) for _ in range(rounds)]
        median = statistics.median(times)
        is_quick &= median <= _GOAL_MS
        print(f"{name:24} {median:7.0f} ms   (from {min(times):.0f} to {max(times):.0f})", flush=True)
    return is_quick


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    chosen = parser.parse_args()
    with running_console(registry=True) as console, chromium() as browser:
        fill(console.broker.bootstrap_servers, chosen.topics, chosen.groups)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        console.open(page)
        is_quick = measure(page, {**views(page), **_MORE}, chosen.rounds)
    return 0 if is_quick else 1


if __name__ == "__main__":
    sys.exit(main())
