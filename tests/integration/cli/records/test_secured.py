"""`kaspar produce`, `consume` and `bench` over SASL_SSL: with permission, without it, and with a wrong password."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kaspar.acls.acl import AclOperation, ResourceType
from tests.integration.cli.conftest import SecuredBroker
from tests.integration.cli.records.command import Done, Kaspar
from tests.peers.sasl_ssl import Acl, User, add_user, allow

USER = User("records", "secret-of-records")
TOPIC = "secured-records"
READ_ONLY = "secured-records-to-read"
WRITE_ONLY = "secured-records-to-write"


@pytest.fixture(scope="session")
def properties(secured: SecuredBroker) -> dict[str, str]:
    """Of a user of these tests, with some permissions: that of the broker may do nothing, which other tests rely on."""
    add_user(AdminClient({"bootstrap.servers": secured.process.bootstrap}), USER)
    allow(
        secured.process.bootstrap,
        USER,
        [
            *(Acl(ResourceType.TOPIC, TOPIC, each) for each in (AclOperation.READ, AclOperation.WRITE)),
            Acl(ResourceType.TOPIC, READ_ONLY, AclOperation.READ),
            Acl(ResourceType.TOPIC, WRITE_ONLY, AclOperation.WRITE),
            Acl(ResourceType.GROUP, "kaspar-bench-*", AclOperation.READ),
        ],
    )
    return {**secured.listener.java, "sasl.jaas.config": USER.jaas}


@pytest.fixture
def outside(
    secured: SecuredBroker,
    properties: dict[str, str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Kaspar:
    """On the secured listener. Topics are made on the other one."""
    inside = Kaspar(secured.process.bootstrap, capfd, monkeypatch)
    for topic in (TOPIC, READ_ONLY, WRITE_ONLY):
        inside.write(topic, "--create", "--value", "first")
    (tmp_path / "client.properties").write_text(_lines(properties))
    return Kaspar(properties["bootstrap.servers"], capfd, monkeypatch)


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


def test_wrong_password(outside: Kaspar, properties: dict[str, str], tmp_path: Path) -> None:
    wrong = {**properties, "sasl.jaas.config": User(USER.name, "wrong").jaas}
    (tmp_path / "client.properties").write_text(_lines(wrong))
    for words in (["produce", TOPIC, "--value", "x"], ["consume", TOPIC], ["bench", "latency", TOPIC]):
        done = _run(outside, tmp_path, *words)
        assert (done.code, done.output, len(done.errors.splitlines())) == (4, "", 1), done
