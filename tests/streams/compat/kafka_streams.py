"""Kafka Streams itself: runs the topologies of java/ in its TopologyTestDriver, all jobs in one JVM."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.peers.downloads import require_tool
from tests.peers.java_program import compiled, platform_jars
from tests.peers.kafka import LIGHT_JVM
from tests.streams.compat.generators import AdvanceWallClock, Step, Steps
from tests.streams.compat.results import ChangelogRow, Result, Row, StoreRow

SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
RUN_SECONDS = 1_000.0
IN_MEMORY = Path("/dev/shm")
"""RocksDB writes a file for every record: in memory that takes a tenth of the time."""
APPLICATION_ID = "compat"
CHANGELOG = "-changelog"


@dataclass(frozen=True, slots=True)
class Job:
    topology: str
    input: str
    steps: Steps = field(repr=False)
    stores: str = "InMemory"
    """Or RocksDB."""
    cache: int = 0
    """The size of Kafka's cache, in bytes."""


def run(jobs: Sequence[Job]) -> list[Result]:
    """The results, in the order of the jobs."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        java = [require_tool("java"), "-Xmx512m", *LIGHT_JVM, f"-Djava.io.tmpdir={folder}"]
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        classes = compiled("streams-topologies", SOURCES)
        done = subprocess.run(
            [*java, quiet, "-cp", f"{classes}:{platform_jars()}/*", "RunTopologies"],
            input="".join(f"{json.dumps(_to_json(job))}\n" for job in jobs),
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-5000:]
    return [_from_json(json.loads(line)) for line in done.stdout.splitlines()]


def _to_json(job: Job) -> dict[str, Any]:
    return {
        "topology": job.topology,
        "stores": job.stores,
        "cache": job.cache,
        "steps": [_step(step) for step in job.steps],
    }


def _step(step: Step) -> dict[str, Any]:
    if isinstance(step, AdvanceWallClock):
        return {"advance_wall_clock_ms": step.milliseconds}
    return {
        "topic": step.topic,
        "key": step.key,
        "value": step.value,
        "timestamp": step.timestamp,
        "headers": step.headers,
    }


def _from_json(result: dict[str, Any]) -> Result:
    changelogs: dict[str, dict[bytes, ChangelogRow]] = {}
    for topic, rows in result.get("topics", {}).items():
        if topic.endswith(CHANGELOG):
            last = changelogs.setdefault(topic.removeprefix(f"{APPLICATION_ID}-").removesuffix(CHANGELOG), {})
            last.update({bytes.fromhex(key): ChangelogRow(_bytes(value), time) for _, key, value, time, _ in rows})
    return Result(
        changelogs=changelogs,
        description=result.get("description", ""),
        topics={
            topic: [
                Row(step, _bytes(key), _bytes(value), timestamp, _headers(headers))
                for step, key, value, timestamp, headers in rows
            ]
            for topic, rows in result.get("topics", {}).items()
        },
        stores={
            name: [StoreRow(key, value, timestamp, *window) for key, value, timestamp, *window in rows]
            for name, rows in result.get("stores", {}).items()
        },
        error=result.get("error"),
    )


def _bytes(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)


def _headers(headers: Sequence[tuple[str, str | None]]) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((name, _bytes(value)) for name, value in headers)
