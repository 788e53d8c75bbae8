"""`kaspar demo` with Spark: results come back from the topics that its programs write, the console shows everything,
and nothing stays behind."""

import json
import os
import re
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.commands import PROGRAMS
from tests.spark.marked import Mark

SECONDS = 110.0


class Demo:
    """A running demo, which is ended hard if it takes too long."""

    def __init__(self) -> None:
        self._mark = Mark()
        self._process = subprocess.Popen(
            [PROGRAMS / "kaspar", "demo"],
            env=self._mark.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._too_late = threading.Timer(SECONDS, self._process.kill)
        self._too_late.start()

    def interrupt_after(self, *patterns: str, look: Callable[[str], None] = lambda shown: None) -> str:
        """Ctrl-C as soon as all of these are shown, and `look` has looked. Returns all that it has shown when it has
        ended cleanly."""
        shown: list[str] = []
        missing = set(patterns)
        with self._process as demo:
            assert demo.stdout is not None
            for line in demo.stdout:  # ends with the demo
                shown.append(line)
                missing -= {pattern for pattern in missing if re.search(pattern, line)}
                if not missing:
                    break
            try:
                look("".join(shown))
            except BaseException:
                demo.kill()
                raise
            os.killpg(demo.pid, signal.SIGINT)  # as a terminal does: to all of them
            rest, errors = demo.communicate(timeout=SECONDS)
        self._too_late.cancel()
        everything = "".join(shown) + rest
        assert demo.returncode == 0, everything + errors
        assert missing == set(), everything
        assert self._mark.processes() == []
        return everything


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as response:
        return json.load(response)


def the_console_shows_everything(shown: str) -> None:
    address = re.search(r"^  console +(http://\S+)$", shown, re.MULTILINE)
    assert address is not None, shown
    pipelines = ask(f"{address[1]}/api/pipelines")["rows"]
    assert {each["name"]: each["state"] for each in pipelines} == {
        "click-enrichment": "running",
        "stock-statistics": "running",
    }
    records = {topic["name"]: topic["records"] for topic in ask(f"{address[1]}/api/topics?limit=100")["rows"]}
    assert all(records[topic] > 0 for topic in ("orders", "payments", "click-enrichment-dead-letters"))
    assert "recommendations" in [group["group_id"] for group in ask(f"{address[1]}/api/groups")["rows"]]


@pytest.mark.timeout(300)
def test_demo_shows_results_of_both_programs_and_ends_cleanly_when_interrupted() -> None:
    shown = Demo().interrupt_after(
        r"stock-statistics .* rows/s .* lag .* [A-Z]+ \d+ trades from [\d.]+, average [\d.]+",
        r"click-enrichment .* rows/s .* lag .* user-\d+ .*/[a-z]+",
        look=the_console_shows_everything,
    )
    ended = re.search(r"([\d,]+) events produced, ([\d,]+) trades summarised and ([\d,]+) views enriched", shown)
    assert ended is not None, shown
    produced, trades, views = (int(number.replace(",", "")) for number in ended.groups())
    assert 0 < trades < produced
    assert views > 0


@pytest.mark.timeout(300)
def test_demo_ends_cleanly_when_interrupted_while_spark_starts() -> None:
    assert " events produced, 0 trades summarised" in Demo().interrupt_after("Waiting for Spark to start")
