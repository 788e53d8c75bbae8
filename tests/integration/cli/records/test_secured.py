"""`kaspar produce`, `consume` and `bench` over SASL_SSL: with permission, without it, and with a wrong password."""

from pathlib import Path

import pytest

from kaspar.acls.acl import AclOperation, ResourceType
from tests.integration.cli.conftest import SecuredBroker
from tests.integration.cli.records.command import Done, Kaspar
from tests.peers.sasl_ssl import Acl

TOPIC = "secured-records"
READ_ONLY = "secured-records-to-read"
WRITE_ONLY = "secured-records-to-write"


@pytest.fixture(scope="session")
def _permissions(secured: SecuredBroker) -> None:
    secured.listener.admit(
        [
            *(Acl(ResourceType.TOPIC, TOPIC, each) for each in (AclOperation.READ, AclOperation.WRITE)),
            Acl(ResourceType.TOPIC, READ_ONLY, AclOperation.READ),
            Acl(ResourceType.TOPIC, WRITE_ONLY, AclOperation.WRITE),
            Acl(ResourceType.GROUP, "kaspar-bench-*", AclOperation.READ),
        ]
    )


@pytest.fixture
def outside(
    secured: SecuredBroker,
    _permissions: None,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Kaspar:
    """On the secured listener. Topics are made on the other one."""
    inside = Kaspar(secured.process.bootstrap, capfd, monkeypatch)
    for topic in (TOPIC, READ_ONLY, WRITE_ONLY):
        inside.write(topic, "--create", "--value", "first")
    (tmp_path / "client.properties").write_text(_lines(secured.listener.java))
    return Kaspar(secured.listener.java["bootstrap.servers"], capfd, monkeypatch)


def _lines(properties: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def _run(outside: Kaspar, tmp_path: Path, *words: str) -> Done:
    return outside.run(*words, "--config", str(tmp_path / "client.properties"))


def test_records_and_benchmarks_with_permission(outside: Kaspar, tmp_path: Path) -> None:
    assert _run(outside, tmp_path, "produce", TOPIC, "--value", "hello").code == 0
    done = _run(outside, tmp_path, "consume", TOPIC, "--from", "-1")
    assert (done.code, done.lines) == (0, ["hello"])
    for what in ("produce", "latency", "consume"):
        assert _run(outside, tmp_path, "bench", what, TOPIC, "-n", "2").code == 0


@pytest.mark.parametrize(
    ("words", "thing"),
    [
        (["produce", READ_ONLY, "--value", "x"], "topic"),
        (["consume", WRITE_ONLY], "topic"),
        (["consume", TOPIC, "--group", "forbidden"], "group"),
        (["bench", "produce", READ_ONLY, "-n", "5"], "topic"),
        (["bench", "consume", WRITE_ONLY], "topic"),
    ],
)
def test_missing_permission(outside: Kaspar, tmp_path: Path, words: list[str], thing: str) -> None:
    done = _run(outside, tmp_path, *words)
    assert (done.code, done.output) == (4, "")
    assert done.errors == f"kaspar: not permitted: an ACL for the {thing} is missing; 'kaspar acl add' adds it\n"


def test_wrong_password(outside: Kaspar, secured: SecuredBroker, tmp_path: Path) -> None:
    wrong = {**secured.listener.java, "sasl.jaas.config": secured.listener.java["sasl.jaas.config"].replace("t", "T")}
    (tmp_path / "client.properties").write_text(_lines(wrong))
    for words in (["produce", TOPIC, "--value", "x"], ["consume", TOPIC], ["bench", "latency", TOPIC]):
        done = _run(outside, tmp_path, *words)
        assert (done.code, done.output, len(done.errors.splitlines())) == (4, "", 1), done
