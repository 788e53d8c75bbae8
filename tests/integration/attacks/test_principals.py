"""Names that look like other names, or like something else than a name: each is one principal, and one line of the
audit log.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.metadata import MetadataRequest
from kaspar.security.scram import SCRAM_SHA_256, ScramClient
from tests.integration.attacks.target import (
    TOPIC,
    WRITE,
    Guest,
    Target,
    add_scram_users,
    allow,
    revoke_all,
    trusting,
)
from tests.peers.observed import wait_until
from tests.peers.raw_client import request_frame

ASCII_NAMES = [
    "new\nline",
    "carriage\rreturn",
    'quo"te',
    "{}",
    '", "principal": "User:admin',
    "*",
    "User:*",
    "User:alice",
    "alice ",
    " alice",
    "Alice",
    "alice,admin",
    "alice=admin",
    "escape\x1b[2J",
    "back\\slash",
    "del\x7f",
    "a" * 2000,
]
SUBJECTS = [
    "alice",
    "alice,OU=admin",
    "alice\0",
    "admin\nUser:admin",
    "*",
    "User:*",
    "\u0430lice",  # a Cyrillic a
    "\uff41lice",  # full width
    "alice\u200b",  # zero width
    "\u202eecila",  # right to left
    "line\u2028separator",
    'quo"te',
    "back\\slash",
    "+a=b;<c>#",
]


@pytest.fixture
def honest(target: Target) -> Iterator[Target]:
    """Alice, and nobody else, may write: a name that is taken for hers gets in."""
    with target.client() as admin:
        assert allow(admin, "User:alice", WRITE) == ErrorCode.NONE
        assert allow(admin, "User:CN=admin", WRITE) == ErrorCode.NONE
        yield target
        revoke_all(admin)


def may_write(client: Guest) -> bool:
    code = client.produce(TOPIC, [b"x"]).error_code
    assert code in (ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return code == ErrorCode.NONE


def check(target: Target, client: Guest, principal: str) -> None:
    """It may do nothing, which is one line of the audit log; and then what its own ACL allows it."""

    def entries() -> list[dict[str, str]]:
        return [entry for entry in target.audit_lines() if entry["principal"] == principal]

    before = len(entries())
    assert not may_write(client)
    wait_until(lambda: len(entries()) > before, "the audit log has a line")
    (entry,) = entries()[before:]
    assert (entry["message"], entry["operation"]) == ("denied", "WRITE")
    assert entry["resource"] == f"Topic:LITERAL:{TOPIC}"
    if principal != "User:*":  # which stands for everybody
        with target.client() as admin:
            assert allow(admin, principal, WRITE) == ErrorCode.NONE
        assert may_write(client)


def test_the_right_name_may_write(honest: Target) -> None:
    with honest.user("alice") as alice:
        assert may_write(alice)


@pytest.mark.parametrize("name", ASCII_NAMES, ids=repr)
def test_a_name_by_scram(honest: Target, name: str) -> None:
    with honest.client() as admin:
        assert set(add_scram_users(admin, {name: "secret"})) == {ErrorCode.NONE}
    with honest.guest("SASL") as guest:
        assert guest.scram(ScramClient(SCRAM_SHA_256, name, "secret")).error_code == ErrorCode.NONE
        check(honest, guest, f"User:{name}")


@pytest.mark.parametrize("name", ["\u0430lice", "\uff41lice"], ids=ascii)
def test_a_name_by_plain(honest: Target, name: str) -> None:
    with honest.user(name) as guest:
        check(honest, guest, f"User:{name}")


@pytest.mark.parametrize(
    "message",
    [
        b"\0alice\0alice-secret\0",
        b"\0alice\0alice-secret\n",
        b"\0alice\0\0alice-secret",
        b"\0alice \0alice-secret",
        b"\0ALICE\0alice-secret",
        b"\0al\xc2\xadice\0alice-secret",
        b"\0alice\xff\0alice-secret",
        b"\0\0alice-secret",
        b"\0alice\0",
        b"admin\0alice\0alice-secret",
        b"*\0alice\0alice-secret",
        b"alice\0alice-secret",
        b"\0" * 50_000,
        b"\0*\0alice-secret",
    ],
)
def test_what_is_not_quite_the_right_name_and_password_by_plain(target: Target, message: bytes) -> None:
    with target.guest("SASL") as guest:
        guest.handshake("PLAIN")
        guest.is_refused(message)


@contextmanager
def with_subject(target: Target, common_name: str, folder: Path) -> Iterator[Guest]:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name, _validate=False)])
    (folder / "client.pem").write_bytes(target.authority.issue("client", subject=subject).key_and_chain)
    context: ssl.SSLContext = trusting(target.authority)
    context.load_cert_chain(folder / "client.pem")
    with target.guest("MUTUAL") as guest:
        guest.encrypt(context)
        yield guest


@pytest.mark.parametrize("name", SUBJECTS, ids=ascii)
def test_a_name_by_certificate(honest: Target, name: str, tmp_path: Path) -> None:
    escaped = name
    for character in '\\,=+<>#;"':
        escaped = escaped.replace(character, f"\\{character}")
    with with_subject(honest, name, tmp_path) as guest:
        check(honest, guest, f"User:CN={escaped}")


def test_a_failed_log_in_is_one_line_of_the_log(target: Target) -> None:
    """Whatever its client calls itself, and its mechanism."""
    spoofed = "x\n[2026-01-01 00:00:00,000] ERROR spoofed\x1b[31m\u2028"
    with target.guest("SASL") as guest:
        guest.handshake(spoofed)
    with target.guest("SASL") as guest:
        guest.handshake("PLAIN")
        guest.is_refused(f"\0{spoofed}\0wrong".encode())

    wait_until(lambda: "spoofed" in target.log_text(), "the failures are logged")
    (line,) = (line for line in target.log_text().splitlines() if "spoofed" in line)
    assert line.startswith("[")
    assert "a client failed to authenticate" in line
    assert "\x1b" not in line


def test_a_client_id_without_end_is_cut_in_the_log(target: Target) -> None:
    name = "endless" + "\x01" * 32_000
    with target.guest("SASL") as guest:
        guest.send(request_frame(MetadataRequest(topics=()), 12, client_id=name))
        assert guest.is_closed_by_broker()
    wait_until(lambda: "endless" in target.log_text(), "it is logged")
    (line,) = (line for line in target.log_text().splitlines() if "endless" in line)
    assert len(line) < 2000
