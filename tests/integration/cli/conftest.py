"""One broker for all tests of this folder, and a way to call `kaspar` on it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kaspar.cli.main import main
from tests.peers.kaspar import KasparProcess
from tests.peers.sasl_ssl import SecuredListener, User


class Ended(NamedTuple):
    code: int
    output: str
    errors: str


class Kaspar:
    """The command in this process, with the broker of the tests."""

    def __init__(self, bootstrap: str, capsys: pytest.CaptureFixture[str], prefix: str) -> None:
        self.bootstrap = bootstrap
        self._capsys = capsys
        self._prefix = prefix

    def name(self, what: str) -> str:
        """For a topic or group of this test only: tests share the broker."""
        return f"{self._prefix}-{what}"

    def run(self, *arguments: str) -> Ended:
        self._capsys.readouterr()
        code = main([*arguments, "-b", self.bootstrap])
        output, errors = self._capsys.readouterr()
        assert "Traceback" not in errors
        return Ended(code, output, errors)

    def lines(self, *arguments: str) -> list[list[str]]:
        """The words of each line of a command that succeeds."""
        ended = self.run(*arguments)
        assert ended.code == 0, ended
        return [line.split() for line in ended.output.splitlines()]

    def json(self, *arguments: str) -> Any:
        ended = self.run(*arguments, "--json")
        assert ended.code == 0, ended
        return json.loads(ended.output)

    def refusal(self, code: int, *arguments: str) -> str:
        ended = self.run(*arguments)
        assert ended.code == code, ended
        assert ended.errors.startswith("kaspar: ")
        return ended.errors.removeprefix("kaspar: ")


class SecuredBroker(NamedTuple):
    process: KasparProcess
    listener: SecuredListener
    """Clients log in there as a user who may do nothing; on the other listener everybody may do everything."""


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    settings = {
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    process = KasparProcess(tmp_path_factory.mktemp("broker"), overrides=settings)
    listener = SecuredListener(tmp_path_factory.mktemp("certificates"), process, User("client", "secret"))
    with process:
        listener.admit([])
        yield SecuredBroker(process, listener)


@pytest.fixture
def broker(secured: SecuredBroker) -> KasparProcess:
    return secured.process


@pytest.fixture(autouse=True)
def _no_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("KASPAR_PROFILE", "KASPAR_BOOTSTRAP_SERVER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kaspar(broker: KasparProcess, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Kaspar:
    return Kaspar(broker.bootstrap, capsys, str(abs(hash(request.node.nodeid)) % 10**8))
