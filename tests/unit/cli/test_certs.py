"""`kaspar certs`: what it writes can be used, keeps what is there, and is readable by nobody else."""

import stat
from pathlib import Path

import pytest

from kaspar.cli.main import main
from kaspar.security.tls import client_context, server_context


def test_one_command_makes_a_ca_a_broker_and_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "certs"
    assert main(["certs", "--dir", str(folder), "--client", "alice", "--password", "secret"]) == 0
    assert sorted(file.name for file in folder.iterdir()) == [
        "alice.p12",
        "alice.pem",
        "broker.p12",
        "broker.pem",
        "ca.key",
        "ca.pem",
    ]
    for file in folder.iterdir():
        if file.name != "ca.pem":
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem")}
    for name, kind in (("broker.pem", "PEM"), ("broker.p12", "PKCS12")):
        own = {
            "ssl.keystore.type": kind,
            "ssl.keystore.location": str(folder / name),
            "ssl.keystore.password": "secret",
        }
        server_context({**own, **trusted}, "required")
    client_context({"ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / "alice.pem"), **trusted})
    output = capsys.readouterr().out
    assert f"ssl.keystore.location={folder}/broker.pem" in output
    assert "secret" not in output


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    assert main(["certs", "--dir", str(tmp_path)]) == 0
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert main(["certs", "--dir", str(tmp_path), "--client", "bob"]) == 0
    after = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert after.keys() - before.keys() == {"bob.pem"}
    assert {name: after[name] for name in before} == before


def test_other_servers_have_certificates_by_the_same_authority(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certs", "--dir", str(tmp_path), "--name", "zookeeper", "--host", "zk1", "--client", "kafka"]) == 0
    assert {file.name for file in tmp_path.iterdir()} == {"ca.key", "ca.pem", "kafka.pem", "zookeeper.pem"}
    assert f"{tmp_path}/zookeeper.pem contains the key" in capsys.readouterr().out
    assert main(["certs", "--dir", str(tmp_path), "--name", "ca"]) == 1
    assert main(["certs", "--dir", str(tmp_path), "--name", "zookeeper", "--client", "zookeeper"]) == 1


@pytest.mark.parametrize("name", ["ca", "broker", "../x", ""])
def test_a_client_may_not_be_called_anything(name: str, tmp_path: Path) -> None:
    assert main(["certs", "--dir", str(tmp_path), "--client", name]) == 1


def test_a_ca_without_its_key_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ca.pem").write_text("a certificate")
    assert main(["certs", "--dir", str(tmp_path)]) == 1
    assert "ca.key is missing" in capsys.readouterr().err
    assert (tmp_path / "ca.pem").read_text() == "a certificate"
