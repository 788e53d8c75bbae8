"""Commands start soon since they load little: what costs many milliseconds is imported where it is needed."""

import subprocess
import sys

import pytest

HEAVY = {
    "asyncio",
    "confluent_kafka",
    "importlib.metadata",
    "json",
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


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("kaspar.tools.topics.command", set()),
        ("kaspar.tools.topics.describing", set()),
        ("kaspar.tools.get_offsets.command", set()),
        ("kaspar.tools.broker_api_versions", set()),
        ("kaspar.tools.log_dirs", {"json"}),
        ("kaspar.tools.delete_records", {"json"}),
    ],
)
def test_command_loads_nothing_heavy(module: str, needed: set[str]) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert HEAVY & {*done.stdout.split()} == needed
