"""Commands of administrators as processes: exit codes, a reader that has ended, and Ctrl-C."""

import os
from pathlib import Path

import pytest

from tests.integration.tools.processes import SECONDS, interrupt, read_by_nobody, start
from tests.peers.kaspar import KasparProcess

SERVERS = ("--bootstrap-server", "ADDRESS")
COMMANDS = {
    "kafka-acls": (*SERVERS, "--list"),
    "kafka-broker-api-versions": SERVERS,
    "kafka-client-metrics": (*SERVERS, "--list"),
    "kafka-cluster": ("cluster-id", *SERVERS),
    "kafka-configs": (*SERVERS, "--describe", "--broker", "1", "--all"),
    "kafka-consumer-groups": (*SERVERS, "--list", "--state"),
    "kafka-delegation-tokens": (*SERVERS, "--describe", "--command-config", os.devnull),
    "kafka-delete-records": (*SERVERS, "--offset-json-file", "OFFSETS"),
    "kafka-features": (*SERVERS, "describe"),
    "kafka-get-offsets": SERVERS,
    "kafka-groups": (*SERVERS, "--list"),
    "kafka-log-dirs": (*SERVERS, "--describe"),
    "kafka-metadata-quorum": (*SERVERS, "describe", "--status"),
    "kafka-topics": (*SERVERS, "--list"),
    "kafka-transactions": (*SERVERS, "list"),
}
every_command = pytest.mark.parametrize("name", COMMANDS)


def words_of(name: str, folder: Path, *more: str) -> list[str]:
    offsets = folder / "offsets.json"
    offsets.write_text('{"partitions": [{"topic": "orders", "partition": 0, "offset": 0}]}')
    return [str(offsets) if word == "OFFSETS" else word for word in (*COMMANDS[name], *more)]


@every_command
def test_ctrl_c(name: str, tmp_path: Path) -> None:
    assert interrupt(name, *words_of(name, tmp_path)) == (130, "")


@every_command
def test_the_reader_has_ended(name: str, broker: KasparProcess, tmp_path: Path) -> None:
    code, errors = read_by_nobody(name, *words_of(name, tmp_path), address=broker.bootstrap)
    assert code in (0, 1)  # 0 if it had nothing to print
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("name", "more", "code"),
    [
        ("kafka-acls", (), 1),  # the broker has no authorizer
        ("kafka-client-metrics", (), 0),
        ("kafka-configs", (), 0),
        ("kafka-delegation-tokens", (), 1),  # nobody has logged in
        ("kafka-get-offsets", ("--topic", "no-such-topic"), 1),
        ("kafka-log-dirs", ("--broker-list", "9"), 1),
        ("kafka-topics", (), 0),
        ("kafka-topics", ("--create",), 1),
    ],
)
def test_exit_codes(name: str, more: tuple[str, ...], code: int, broker: KasparProcess, tmp_path: Path) -> None:
    with start(name, *words_of(name, tmp_path, *more), address=broker.bootstrap) as process:
        output, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == code
    assert "Traceback" not in output + errors
