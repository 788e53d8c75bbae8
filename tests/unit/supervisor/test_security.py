"""The files of a secured cluster: who can read them, what stays, and what is renewed."""

import json
import stat
from pathlib import Path

import pytest
from cryptography import x509

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.security.certificates import CertificateAuthority
from kaspar.security.client import client_security
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan
from kaspar.supervisor.security import (
    client_lines,
    contacts_of,
    passwords,
    security_settings,
    write_security,
)
from kaspar.supervisor.settings import broker_settings, check_settings

PLAN = ClusterPlan((BrokerPlan(1, 9092, 9404, 9500), BrokerPlan(2, 9093, 9405, 9501)))
PLAIN = ClusterPlan((BrokerPlan(1, 9092, 9404),))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "c1")
    folder.path.mkdir()
    write_security(folder, PLAN)
    return folder


def test_only_the_owner_can_read_what_is_secret(folder: Folder) -> None:
    for directory in (folder.path, folder.security, folder.clients):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    files = [*folder.security.iterdir(), *folder.clients.iterdir()]
    assert {file.name for file in files if stat.S_IMODE(file.stat().st_mode) != 0o600} == {"ca.pem"}


def test_everything_stays_at_the_next_start(folder: Folder) -> None:
    before = {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}
    assert len(before) == 8 + 6  # users.created comes when they are
    write_security(folder, PLAN)
    assert {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()} == before


def test_certificate_that_ends_soon_is_renewed_by_the_same_authority(folder: Folder) -> None:
    own, other = folder.security / "broker-1.pem", folder.security / "broker-2.pem"
    authority = CertificateAuthority.load(
        (folder.security / "ca.pem").read_bytes(), (folder.security / "ca.key").read_bytes()
    )
    own.write_bytes(authority.issue("broker", hosts=["127.0.0.1"], days=30).key_and_chain)
    kept = other.read_bytes()
    write_security(folder, PLAN)
    renewed = x509.load_pem_x509_certificate(own.read_bytes())
    renewed.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    assert (renewed.not_valid_after_utc - renewed.not_valid_before_utc).days > 800
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert other.read_bytes() == kept


def test_settings_of_a_broker_are_valid_and_hold_no_secret(folder: Folder) -> None:
    values = broker_settings(
        PLAN, PLAN.brokers[0], Path("/data"), {}, security=security_settings(folder, PLAN.brokers[0])
    )
    check_settings(values)
    assert values["listeners"] == "CLIENTS://127.0.0.1:9092,BROKERS://127.0.0.1:9500"
    assert not [password for password in passwords(folder).values() if password in str(values)]
    assert security_settings(folder, PLAIN.brokers[0]) == {}


def test_override_that_would_undo_it_is_refused(folder: Folder) -> None:
    security = security_settings(folder, PLAN.brokers[0])
    with pytest.raises(InvalidSetting, match=r"--override super.users conflicts with --secure"):
        broker_settings(PLAN, PLAN.brokers[0], Path("/data"), {"super.users": "User:eve"}, security=security)


def test_settings_for_clients_can_be_used(folder: Folder) -> None:
    from kaspar.config import load_settings
    from kaspar.spark.reading.options import ReadOptions

    properties = load_settings(folder.clients / "client.properties")
    java = client_security(properties)
    assert java is not None
    assert java.login is not None
    assert java.login.options == {"username": "client", "password": passwords(folder)["client"]}
    spark = json.loads((folder.clients / "admin.spark.json").read_text())
    security = ReadOptions.of({**spark, "subscribe": "t"}).connection.security.load()
    assert security is not None
    assert security.tls is not None
    librdkafka = dict(
        line.split("=", 1) for line in (folder.clients / "client.librdkafka.properties").read_text().splitlines()
    )
    assert librdkafka["sasl.password"] == passwords(folder)["client"] != passwords(folder)["admin"]


def test_passwords_are_shown_only_if_asked_for(folder: Folder) -> None:
    secrets = passwords(folder)
    assert not [each for each in secrets.values() if each in str(client_lines(folder, PLAN, with_passwords=False))]
    shown = "\n".join(client_lines(folder, PLAN, with_passwords=True))
    assert shown.count(secrets["client"]) == 3
    assert secrets["admin"] not in shown


def test_brokers_are_reached_by_their_own_listener(folder: Folder) -> None:
    contacts = contacts_of(folder, PLAN)
    assert {number: contact.address for number, contact in contacts.items()} == {
        1: "127.0.0.1:9500",
        2: "127.0.0.1:9501",
    }
    assert all(contact.security is not None for contact in contacts.values())
    (folder.security / "supervisor.pem").unlink()
    with pytest.raises(KasparError, match=r"cannot be reached: ssl.keystore.location .*supervisor.pem cannot be read"):
        contacts_of(folder, PLAN)
