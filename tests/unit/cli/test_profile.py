"""`kaspar profile`: what is kept, who can read it, and which settings a command uses."""

import json
import stat
from pathlib import Path

import click
import pytest

from kaspar.base.errors import KasparError
from kaspar.cli.failures import NOT_FOUND, USAGE
from kaspar.cli.main import main
from kaspar.cli.profiles import Profiles, default_folder, is_secret
from kaspar.cli.session import ClusterChoice, Session, cluster_options

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="x\\\\y=#!";'


def test_profile_is_readable_only_by_its_owner(profiles_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "create", "prod", "-b", "kafka1:9093", "-X", f"sasl.jaas.config={JAAS}"]) == 0
    assert "which is now in use" in capsys.readouterr().out
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in profiles_folder.iterdir()} == {
        "prod.properties": 0o600,
        "current": 0o600,
    }
    assert Profiles(profiles_folder).read("prod") == {"bootstrap.servers": "kafka1:9093", "sasl.jaas.config": JAAS}


def test_passwords_are_masked_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(["profile", "create", "prod", "-X", f"sasl.jaas.config={JAAS}"])
    capsys.readouterr()
    assert main(["profile", "show"]) == 0
    assert "password" not in capsys.readouterr().out
    assert main(["profile", "show", "prod", "--secrets", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sasl.jaas.config"] == JAAS
    assert all(map(is_secret, ("ssl.key.password", "ssl.keystore.key", "sasl.jaas.config", "sasl.oauthbearer.token")))
    assert not is_secret("security.protocol")


def test_what_is_said_closer_to_the_command_wins(tmp_path: Path) -> None:
    main(["profile", "create", "one", "-b", "one:1", "-X", "client.id=profile", "-X", "security.protocol=PLAINTEXT"])
    main(["profile", "create", "two", "-b", "two:2"])
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:3\nclient.id=file\n")
    assert ClusterChoice().properties() == {
        "bootstrap.servers": "one:1",
        "client.id": "profile",
        "security.protocol": "PLAINTEXT",
    }
    assert ClusterChoice(profile="two").properties() == {"bootstrap.servers": "two:2"}
    assert ClusterChoice(settings=["client.id=x"]).properties()["security.protocol"] == "PLAINTEXT"
    assert ClusterChoice(config_file=file).properties() == {"bootstrap.servers": "file:3", "client.id": "file"}
    assert ClusterChoice("other:1").properties() == {"bootstrap.servers": "other:1"}, "gets no passwords of a profile"
    assert ClusterChoice("other:1", profile="one").properties()["client.id"] == "profile"
    chosen = ClusterChoice("me:4", None, file, ["client.id=x"]).properties()
    assert (chosen["bootstrap.servers"], chosen["client.id"]) == ("me:4", "x")
    main(["profile", "use", "--none"])
    assert ClusterChoice().properties() == {"bootstrap.servers": "localhost:9092"}


def test_environment_counts_only_if_no_option_names_a_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Otherwise the password of a profile would go to the servers of the environment, or the other way round."""
    main(["profile", "create", "prod", "-b", "prod:1", "-X", "client.id=prod"])
    main(["profile", "use", "--none"])
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:3\n")

    @click.command()
    @cluster_options
    def probe(session: Session) -> None:
        used.append(session.properties)

    def properties(*arguments: str) -> dict[str, str]:
        probe.main(list(arguments), standalone_mode=False)
        return used.pop()

    used: list[dict[str, str]] = []
    monkeypatch.setenv("KASPAR_BOOTSTRAP_SERVER", "environment:1")
    assert properties() == {"bootstrap.servers": "environment:1"}
    assert properties("--profile", "prod") == {"bootstrap.servers": "prod:1", "client.id": "prod"}
    assert properties("--config", str(file)) == {"bootstrap.servers": "file:3"}
    assert properties("--profile", "prod", "-b", "other:1") == {"bootstrap.servers": "other:1", "client.id": "prod"}
    monkeypatch.setenv("KASPAR_PROFILE", "prod")
    assert properties() == {"bootstrap.servers": "environment:1", "client.id": "prod"}
    monkeypatch.delenv("KASPAR_BOOTSTRAP_SERVER")
    assert properties() == {"bootstrap.servers": "prod:1", "client.id": "prod"}
    assert properties("-b", "other:1") == {"bootstrap.servers": "other:1"}


def test_profile_works_in_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profiles_folder: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.pem").touch()
    (tmp_path / "client.properties").write_text("ssl.truststore.location=ca.pem\nssl.keystore.location=/none\n")
    assert main(["profile", "create", "one", "--config", "client.properties"]) == 0
    assert Profiles(profiles_folder).read("one") == {
        "bootstrap.servers": "localhost:9092",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.keystore.location": "/none",
    }


def test_profiles_are_listed_used_and_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    main(["profile", "create", "one"])
    main(["profile", "create", "two", "-b", "two:2"])
    assert main(["profile", "use", "two"]) == 0
    capsys.readouterr()
    assert main(["profile", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"name": "one", "current": False, "bootstrap_servers": "localhost:9092"},
        {"name": "two", "current": True, "bootstrap_servers": "two:2"},
    ]
    assert main(["profile", "delete", "two"]) == 0
    assert Profiles(default_folder()).names() == ["one"]
    assert Profiles(default_folder()).current() is None


def test_editor_changes_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profiles_folder: Path) -> None:
    main(["profile", "create", "one"])
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nrm "$1"; echo bootstrap.servers=new:1 > "$1"\n')
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    assert main(["profile", "edit", "one"]) == 0
    assert Profiles(profiles_folder).read("one") == {"bootstrap.servers": "new:1"}
    assert stat.S_IMODE((profiles_folder / "one.properties").stat().st_mode) == 0o600
    monkeypatch.setenv("VISUAL", str(tmp_path / "none"))
    assert main(["profile", "edit", "one"]) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["show", "nope"], NOT_FOUND, "there is no profile nope"),
        (["use", "nope"], NOT_FOUND, "there is no profile nope"),
        (["show"], 1, "no profile is in use"),
        (["use"], USAGE, "name a profile, or use --none"),
        (["create", "../x"], 1, "invalid profile name '../x'"),
        (["create", "a", "-X", "nonsense"], USAGE, "is not NAME=VALUE"),
        (["create", "a", "--config", "/nowhere"], 1, "/nowhere cannot be read"),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str], code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", *arguments]) == code
    assert sentence in capsys.readouterr().err


def test_a_profile_is_not_replaced_by_accident(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "create", "one"]) == 0
    assert main(["profile", "create", "one"]) == 1
    assert "kaspar profile edit one" in capsys.readouterr().err
    assert main(["profile", "create", "one", "--replace", "-b", "x:1"]) == 0
    with pytest.raises(KasparError):
        Profiles(default_folder()).file("a/b")
