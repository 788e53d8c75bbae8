"""Commands start soon since they load little: what costs many milliseconds is imported where it is needed."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"
SCRIPTS: dict[str, str] = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["scripts"]

HEAVY = {
    "asyncio",
    "confluent_kafka",
    "importlib.metadata",
    "kaspar.broker",
    "kaspar.config",
    "kaspar.protocol.messages.fetch",
    "kaspar.protocol.messages.produce",
    "kaspar.records",
    "kaspar.security",
    "kaspar.storage",
    "rich",
    "ssl",
}


NEEDED = {
    "kafka-dump-log": {"importlib.metadata", "kaspar.records"},
    "kafka-producer-perf-test": {"importlib.metadata", "kaspar.records"},
    "kafka-replica-verification": {"importlib.metadata", "kaspar.protocol.messages.fetch", "kaspar.records"},
    "kafka-storage": {"asyncio", "ssl"},
    "zookeeper-security-migration": {"asyncio", "ssl"},
}
"""What commands load although it costs time: most of them cannot do without."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_command_loads_nothing_heavy(name: str) -> None:
    module = SCRIPTS[name].partition(":")[0]
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert HEAVY & {*done.stdout.split()} <= NEEDED.get(name, set()), "import it inside the function that uses it"
