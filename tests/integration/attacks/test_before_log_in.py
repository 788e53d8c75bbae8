"""What strangers may send where clients have to log in: two requests, and nothing else gets a single byte."""

import struct

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.protocol.api import KNOWN_VERSIONS, ApiKey, api_name
from kaspar.protocol.headers import write_request_header
from kaspar.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kaspar.security.scram import SCRAM_SHA_256, SCRAM_SHA_512
from tests.integration.attacks.target import MAX_SASL_BYTES, TOPIC, Guest, Memory, Target, trusting
from tests.peers.raw_client import NAMES_TOPICS, fetch_request, request_frame

UNKNOWN_KEYS = (-1, 4, 5, 6, 7, 93, 999, 32767)
VERSIONS = ApiVersionsRequest(client_software_name="attacker", client_software_version="1")


def frame_of(api_key: int, version: int) -> bytes:
    """A request with a right header and whatever body: who asks is looked at first."""
    try:
        header = bytes(write_request_header(ApiKey(api_key), version, 7, "attacker"))
    except ValueError:
        header = struct.pack(">hhih", api_key, version, 7, -1)
    body = header + bytes(20)
    return struct.pack(">i", len(body)) + body


def is_closed_without_a_byte(guest: Guest, frame: bytes) -> bool:
    guest.send(frame)
    return guest.is_closed_by_broker()


def frames() -> list[tuple[str, bytes]]:
    known = [
        (f"{api_name(key)} {version}", frame_of(key, version))
        for key, (first, last, _) in KNOWN_VERSIONS.items()
        for version in {first, last}
        if key is not ApiKey.API_VERSIONS
    ]
    return [*known, *((f"API key {key}", frame_of(key, 0)) for key in UNKNOWN_KEYS)]


@pytest.mark.parametrize(
    ("listener", "state"),
    [("SASL", "first"), ("SASL", "after ApiVersions"), ("SASL", "after the handshake"), ("SASL_TLS", "first")],
)
def test_every_api_closes_the_connection(target: Target, listener: str, state: str) -> None:
    allowed = ApiKey.SASL_AUTHENTICATE if state == "after the handshake" else ApiKey.SASL_HANDSHAKE
    for name, frame in frames():
        if name.startswith(f"{api_name(allowed)} "):
            continue
        with target.guest(listener) as guest:
            if listener == "SASL_TLS":
                guest.encrypt(trusting(target.authority))
            if state == "after ApiVersions":
                guest.call(VERSIONS, ApiVersionsResponse, 3)
            elif state == "after the handshake":
                guest.handshake("PLAIN")
            assert is_closed_without_a_byte(guest, frame), name


def test_what_is_sent_behind_the_handshake_is_not_handled(target: Target) -> None:
    """A client may send at once what it wants to do later. Without the log-in it is not done."""
    with target.guest("SASL") as guest:
        guest.call(VERSIONS, ApiVersionsResponse, 3)
        fetch = request_frame(fetch_request(TOPIC, 0), NAMES_TOPICS)
        assert is_closed_without_a_byte(guest, fetch + request_frame(VERSIONS, 3))


@pytest.mark.parametrize("mechanism", ["PLAIN", SCRAM_SHA_256, "GSSAPI", "scram-sha-512", "SCRAM-SHA-512\0", "", "*"])
def test_a_mechanism_that_is_not_enabled_is_refused(target: Target, mechanism: str) -> None:
    with target.guest("STRICT") as guest:
        response = guest.handshake(mechanism)
        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert response.mechanisms == (SCRAM_SHA_512,)
        assert guest.is_closed_by_broker()


def test_a_token_of_another_mechanism_than_the_handshakes_is_refused(target: Target) -> None:
    with target.guest("STRICT") as guest:
        guest.handshake(SCRAM_SHA_512)
        guest.is_refused(b"\0alice\0alice-secret")


def test_a_handshake_that_is_repeated_does_not_change_the_mechanism(target: Target) -> None:
    with target.guest("SASL") as guest:
        guest.handshake(SCRAM_SHA_256)
        assert is_closed_without_a_byte(guest, frame_of(ApiKey.SASL_HANDSHAKE, 1))


def test_a_wrong_attempt_is_the_only_one_of_its_connection(target: Target) -> None:
    """The right password is sent right behind it."""
    with target.guest("SASL") as guest:
        guest.handshake("PLAIN")
        wrong, right = (
            request_frame(SaslAuthenticateRequest(auth_bytes=f"\0alice\0{password}".encode()), 2)
            for password in ("wrong", "alice-secret")
        )
        guest.send(wrong + right)
        assert b"Authentication failed" in guest.receive()
        assert guest.is_closed_by_broker()


TOO_LARGE = {
    "one byte too many": struct.pack(">i", MAX_SASL_BYTES + 1),
    "the largest size": struct.pack(">i", 2**31 - 1),
    "less than nothing": struct.pack(">i", -1),
}


@pytest.mark.parametrize("size", TOO_LARGE)
@pytest.mark.parametrize("state", ["first", "after the handshake", "after a handshake of version 0"])
def test_a_frame_that_is_too_large_is_refused_by_its_length(target: Target, state: str, size: str) -> None:
    with target.guest("SASL") as guest:
        if state != "first":
            guest.handshake(SCRAM_SHA_256, 0 if state.endswith("0") else 1)
        assert is_closed_without_a_byte(guest, TOO_LARGE[size])


def test_frames_as_large_as_may_be_take_memory_only_as_they_come(target: Target) -> None:
    memory = Memory(target)
    guests = [target.guest("SASL") for _ in range(300)]
    try:
        for guest in guests:
            guest.send(struct.pack(">i", MAX_SASL_BYTES) + bytes(100))
        target.still_serves()
    finally:
        for guest in guests:
            guest.close()
    memory.check()
