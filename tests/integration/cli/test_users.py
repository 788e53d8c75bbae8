"""`kaspar user`, `acl` and `quota`, and what is reported to a user without permissions."""

import io
from pathlib import Path

import pytest

from kaspar.cli.failures import FAILED, NOT_FOUND, NOT_PERMITTED
from kaspar.cli.main import main
from tests.integration.cli.conftest import Kaspar, SecuredBroker


def test_user_is_created_listed_changed_and_deleted(kaspar: Kaspar, monkeypatch: pytest.MonkeyPatch) -> None:
    user = kaspar.name("alice")

    def from_standard_input(password: str, *arguments: str) -> int:
        monkeypatch.setattr("sys.stdin", io.StringIO(password))
        return kaspar.run("user", *arguments).code

    assert from_standard_input("secret\n", "create", user) == 0
    assert from_standard_input("secret\n", "create", user) == FAILED
    assert kaspar.run("user", "create", user, "--mechanism", "scram-sha-256", "--password", "x").code == 0
    assert [user, "SCRAM-SHA-512", "4096"] in kaspar.lines("user", "list")
    assert from_standard_input("other\n", "passwd", user, "--iterations", "8192") == 0
    assert [user, "SCRAM-SHA-512", "8192"] in kaspar.lines("user", "list")
    assert from_standard_input("", "passwd", user) == 2
    assert kaspar.run("user", "delete", user, "--yes").output == f"user {user}: deleted\n"
    assert user not in {row["name"] for row in kaspar.json("user", "list")}
    assert "there is no user" in kaspar.refusal(NOT_FOUND, "user", "delete", user)
    assert from_standard_input("x\n", "passwd", user) == NOT_FOUND


def test_acls_are_added_listed_and_removed(kaspar: Kaspar) -> None:
    who = ("--principal", f"User:{kaspar.name('alice')}")
    added = kaspar.run(
        "acl",
        "add",
        "--principal",
        kaspar.name("alice"),
        "--operation",
        "read,describe",
        "--topic",
        "orders",
        "--group",
        "g",
    )
    assert added.code == 0
    assert added.output.splitlines()[0] == f"allow {who[1]} to read topic orders: added"
    assert kaspar.run("acl", "add", *who, "--operation", "all", "--topic", "app.", "--prefix", "--deny").code == 0
    assert kaspar.run("acl", "add", *who, "--operation", "create", "--cluster", "--host", "192.0.2.1").code == 0
    assert len(kaspar.json("acl", "list", *who)) == 6
    (denied,) = kaspar.json("acl", "list", *who, "--deny")
    assert (denied["pattern_type"], denied["resource_name"], denied["operation"]) == ("prefixed", "app.", "all")
    assert kaspar.run("acl", "remove", *who, "--topic", "orders", "--yes").output.count(": removed\n") == 2
    assert kaspar.run("acl", "remove", *who).output.count(": removed\n") == 4
    assert kaspar.run("acl", "list", *who) == (0, "", "No matching ACLs.\n")
    assert kaspar.run("acl", "remove", *who).code == 0


def test_quotas_are_set_and_removed(kaspar: Kaspar) -> None:
    user = kaspar.name("alice")
    assert kaspar.run("quota", "set", "--user", user, "producer_byte_rate=1024", "consumer_byte_rate=2e6").code == 0
    assert kaspar.run("quota", "set", "--user", user, "--default-client-id", "request_percentage=50").code == 0
    rows = [row for row in kaspar.json("quota", "list") if row["entity"].get("user") == user]
    assert [(row["who"], row["quota"], row["value"]) for row in rows] == [
        (f"client-id=(default),user={user}", "request_percentage", 50.0),
        (f"user={user}", "consumer_byte_rate", 2e6),
        (f"user={user}", "producer_byte_rate", 1024.0),
    ]
    assert kaspar.run("quota", "unset", "--user", user, "producer_byte_rate", "consumer_byte_rate").code == 0
    assert kaspar.run("quota", "unset", "--user", user, "--default-client-id", "request_percentage").code == 0
    assert user not in kaspar.run("quota", "list").output
    assert "nonsense" in kaspar.refusal(FAILED, "quota", "set", "--user", user, "nonsense=1")


def test_profile_logs_in_and_what_is_not_permitted_is_said(
    kaspar: Kaspar, secured: SecuredBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = kaspar.name("orders")
    kaspar.run("topic", "create", topic)
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in secured.listener.java.items()))
    assert main(["profile", "create", "secured", "--config", str(file)]) == 0
    capsys.readouterr()
    assert main(["topic", "list"]) == 0
    assert capsys.readouterr().out == ""
    for command in (["topic", "create", kaspar.name("other")], ["topic", "delete", topic], ["acl", "list"]):
        assert main(command) == NOT_PERMITTED, command
        error = capsys.readouterr().err
        assert "not permitted: an ACL for the " in error
        assert "kaspar acl add" in error
    assert kaspar.run("acl", "add", "--principal", "User:client", "--operation", "describe", "--topic", topic).code == 0
    assert main(["topic", "list", "--no-headers"]) == 0
    assert capsys.readouterr().out.split()[0] == topic
    kaspar.run("acl", "remove", "--principal", "User:client")


def test_wrong_password_and_missing_settings_are_explained(
    secured: SecuredBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {
        **secured.listener.java,
        "sasl.jaas.config": secured.listener.java["sasl.jaas.config"].replace("t", "T"),
    }
    given = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    assert main(["topic", "list", *given]) == NOT_PERMITTED
    error = capsys.readouterr().err
    assert error.startswith("kaspar: the broker refused the log-in: ")
    assert "secreT" not in error
    servers = secured.listener.java["bootstrap.servers"]
    assert main(["topic", "list", "-b", servers, "-X", "default.api.timeout.ms=400"]) == 5
    assert "if it requires TLS or authentication, pass the settings with --config FILE" in capsys.readouterr().err
