"""`python -m bench.scale`: the command line, and the output of a run."""

import argparse
import asyncio
import platform
import sys
import tempfile
import time
from pathlib import Path

from bench import report
from bench.rows import figure
from bench.scale.scenario import Line, Scenario, Size
from kaspar.base.errors import KasparError
from kaspar.metadata.zookeeper import ZooKeeperMetadata
from kaspar.zookeeper import ZooKeeperServer, write_config
from tests.peers.wire import free_port

_ROOT = Path(__file__).parents[2]
_DOCUMENT = _ROOT / "docs" / "scale.md"
_WHOLE = Size(brokers=100, topics=2000, partitions_of_each=100)
_QUICK = Size(brokers=10, topics=200, partitions_of_each=100)
_HEAP = "512m"
_COLUMNS = (
    "what",
    "seconds",
    "transactions",
    "round trips",
    "kB written",
    "kB read",
    "kB sent to each broker",
    "ms to apply it there",
)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale",
        description="The controller of a cluster with 100 brokers and 200,000 partitions. A whole run is written to "
        "docs/scale.md.",
    )
    parser.add_argument("--quick", action="store_true", help="10 brokers and 20,000 partitions: for a first look")
    return parser.parse_args()


async def _run(size: Size, folder: Path) -> tuple[Scenario, list[Line]]:
    server = ZooKeeperServer(write_config(folder, client_port=free_port()), heap=_HEAP)
    server.start(ends_with_caller=True)
    try:
        await asyncio.to_thread(server.wait_serving)
        address = f"{server.config.client_host}:{server.config.client_port}"
        metadata = await ZooKeeperMetadata.open(address, session_timeout_ms=30_000)
        try:
            scenario = Scenario(size, metadata.connect)
            return scenario, await scenario.run()
        finally:
            await metadata.close()
    finally:
        server.stop()


def _text(size: Size, scenario: Scenario, lines: list[Line], minutes: float) -> str:
    conditions = [
        *report.run_and_machine("python -m bench.scale", minutes),
        f"Python {platform.python_version()}; one ZooKeeper server, heap {_HEAP}, on the same machine",
        f"{size.brokers} brokers, {size.topics:,} topics with {size.partitions:,} partitions, three replicas",
        f"memory that the controller's image takes: {scenario.image_memory / 1e6:,.0f} MB",
    ]
    rows = [f"| {' | '.join(_COLUMNS)} |", "| --- |" + " ---: |" * (len(_COLUMNS) - 1)]
    for line in lines:
        of = line.traffic
        cells = [
            line.title,
            figure(line.seconds),
            f"{of.transactions:,}",
            f"{of.round_trips:,}",
            figure(of.written_bytes / 1e3),
            figure(of.read_bytes / 1e3),
            "" if line.delta_bytes is None else figure(line.delta_bytes / 1e3),
            "" if line.apply_seconds is None else figure(line.apply_seconds * 1e3),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*(f"- {each}" for each in conditions), "", *rows])


def main() -> int:
    arguments = _arguments()
    size = _QUICK if arguments.quick else _WHOLE
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kaspar-bench-scale-") as folder:
        try:
            scenario, lines = asyncio.run(_run(size, Path(folder)))
        except KasparError as problem:
            print(problem, file=sys.stderr)
            return 1
    text = _text(size, scenario, lines, (time.monotonic() - began) / 60)
    print(text)
    if not arguments.quick:
        report.write_into(_DOCUMENT, "scale", text)
        print(f"\nwritten to {_DOCUMENT.relative_to(_ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
