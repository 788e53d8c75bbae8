"""The programs of examples/streams as people start them: a file, which a worker cannot import, and a generator."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.peers.kaspar import KasparProcess
from tests.spark.conftest import SETTINGS
from tests.spark.topics import Topics, wait_until

PROGRAMS = Path(__file__).parents[3] / "examples" / "streams"
WRITTEN = {
    "word_count": "word-counts",
    "stock_statistics": "stock-statistics",
    "click_enrichment": "enriched-views",
    "top_ten": "top-ten",
    "sensors": "room-temperatures",
    "log_filter": "log-errors",
}
SHORT = {"sensors"}  # it has windows, and classes of its own
SECONDS = 180.0

pytestmark = pytest.mark.timeout(300)


@contextmanager
def running(name: str, bootstrap: str, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """What it prints goes to a file, so that it never waits for a reader."""
    command: list[str | Path] = [sys.executable, PROGRAMS / f"{name}.py", "--bootstrap-server", bootstrap, "--generate"]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("name", "topic"),
    [pytest.param(*each, marks=() if each[0] in SHORT else pytest.mark.long, id=each[0]) for each in WRITTEN.items()],
)
def test_an_example_writes_its_results_until_it_is_interrupted(name: str, topic: str, tmp_path: Path) -> None:
    with (
        KasparProcess(tmp_path / "broker", overrides=SETTINGS) as broker,
        running(name, broker.bootstrap, tmp_path) as process,
    ):
        topics, admin = Topics(broker.bootstrap), AdminClient({"bootstrap.servers": broker.bootstrap})

        def has_written() -> bool:
            assert process.poll() is None, (tmp_path / "output").read_text()
            return topic in admin.list_topics(timeout=30).topics and bool(topics.read(topic))

        wait_until(has_written, f"{name} writes to {topic}", seconds=SECONDS)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, (tmp_path / "output").read_text()


@pytest.mark.parametrize("name", WRITTEN)
def test_help_says_what_an_example_does(name: str) -> None:
    command: list[str | Path] = [sys.executable, PROGRAMS / f"{name}.py", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    for part in (f"python examples/streams/{name}.py", "--bootstrap-server", "--generate", "--rate"):
        assert part in done.stdout
