"""SCRAM: the examples of RFC 7677, both sides against each other, and what an attacker may try."""

import base64
import contextlib
import hmac
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaspar.security.sasl import AuthenticationRefused, InvalidCredentials
from kaspar.security.scram import (
    HASHES,
    MAX_MESSAGE_BYTES,
    SCRAM_SHA_256,
    ScramClient,
    ScramIdentity,
    ScramServer,
    credential_of,
    new_credential,
    salted_password,
)

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
PENCIL = credential_of(SCRAM_SHA_256, salted_password(SCRAM_SHA_256, "pencil", SALT, 4096), SALT, 4096)


def server(nonce: str = "server-nonce") -> ScramServer:
    def identity_of(name: str, is_token: bool) -> ScramIdentity | None:
        if is_token:
            return ScramIdentity(PENCIL, "owner", expires_ms=5) if name == "token-id" else None
        return ScramIdentity(PENCIL, name) if name == "user" else None

    return ScramServer(SCRAM_SHA_256, identity_of, new_nonce=lambda: nonce)


def run(client: ScramClient, broker: ScramServer) -> None:
    token: bytes | None = client.first()
    while token is not None:
        token = client.evaluate(broker.evaluate(token))


def test_the_exchange_of_rfc_7677() -> None:
    broker = server("%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first = broker.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = broker.evaluate(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert broker.is_complete
    assert broker.authorization_id == "user"


@given(
    st.sampled_from(sorted(HASHES)),
    st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1, max_size=20),
    st.text(min_size=1, max_size=20),
)
def test_both_sides_agree_on_any_name_and_password(mechanism: str, name: str, password: str) -> None:
    password = password.encode("utf-8", "replace").decode()
    credential = new_credential(mechanism, password)
    broker = ScramServer(mechanism, lambda user, _: ScramIdentity(credential, user))
    client = ScramClient(mechanism, name, password)
    run(client, broker)
    assert client.is_complete
    assert broker.authorization_id == name


def test_a_wrong_password_is_refused() -> None:
    with pytest.raises(InvalidCredentials):
        run(ScramClient(SCRAM_SHA_256, "user", "pen"), server())


def test_an_unknown_user_is_refused() -> None:
    with pytest.raises(InvalidCredentials):
        run(ScramClient(SCRAM_SHA_256, "nobody", "pencil"), server())


def test_a_delegation_token_logs_in_its_owner() -> None:
    broker = server()
    run(ScramClient(SCRAM_SHA_256, "token-id", "pencil", token_auth=True), broker)
    assert (broker.authorization_id, broker.is_token, broker.expires_ms) == ("owner", True, 5)


def test_a_token_is_no_user_and_a_user_no_token() -> None:
    for name, is_token in (("token-id", False), ("user", True)):
        with pytest.raises(InvalidCredentials):
            run(ScramClient(SCRAM_SHA_256, name, "pencil", token_auth=is_token), server())


def test_a_recorded_exchange_cannot_be_replayed() -> None:
    client = ScramClient(SCRAM_SHA_256, "user", "pencil")
    broker = server("first")
    final = client.evaluate(broker.evaluate(client.first()))
    assert final is not None
    other = server("second")
    other.evaluate(client.first())
    with pytest.raises(InvalidCredentials):
        other.evaluate(final)
    # With the nonce of the new exchange the proof is wrong.
    stolen = re.sub(rb"first", b"second", final)
    third = server("second")
    third.evaluate(client.first())
    with pytest.raises(InvalidCredentials):
        third.evaluate(stolen)


@pytest.mark.parametrize(("header", "binding"), [("n,,", "y,,"), ("n,,", ""), ("n,a=user,", "n,,")])
def test_the_channel_binding_is_that_of_the_first_message(header: str, binding: str) -> None:
    """With a right proof: the client said one thing, and what arrived first was another."""
    for said, is_right in ((header, True), (binding, False)):
        broker = server()
        challenge = broker.evaluate(f"{header}n=user,r=abc".encode()).decode()
        bare = f"c={base64.b64encode(said.encode()).decode()},r=abcserver-nonce"
        signature = hmac.digest(PENCIL.stored_key, f"n=user,r=abc,{challenge},{bare}".encode(), "sha256")
        key = hmac.digest(
            salted_password(SCRAM_SHA_256, "pencil", PENCIL.salt, PENCIL.iterations), b"Client Key", "sha256"
        )
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        with contextlib.nullcontext() if is_right else pytest.raises(InvalidCredentials, match="binding"):
            broker.evaluate(f"{bare},p={proof}".encode())
        assert broker.is_complete == is_right


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(AuthenticationRefused):
        server().evaluate(b"n,a=admin,n=user,r=abc")


@pytest.mark.parametrize(
    "message",
    [b"", b"n,,", b"p=tls-unique,,n=user,r=abc", b"y,,n=user,r=abc", b"n,,n=user", b"\xff\xfe", b"n,,n=us=er,r=abc"],
)
def test_malformed_messages_are_refused(message: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        server().evaluate(message)


def test_a_server_that_does_not_know_the_credential_is_noticed() -> None:
    client = ScramClient(SCRAM_SHA_256, "user", "pencil", nonce="mine")
    client.evaluate(b"r=mineand,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    with pytest.raises(InvalidCredentials):
        client.evaluate(b"v=" + base64.b64encode(b"x" * 32))


def test_a_server_may_not_weaken_the_exchange() -> None:
    for nonce, iterations in (("other", "4096"), ("mineand", "1"), ("mineand", "2147483647"), ("mineand", "9" * 5000)):
        reply = f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i={iterations}".encode()
        with pytest.raises(InvalidCredentials):
            ScramClient(SCRAM_SHA_256, "user", "pencil", nonce="mine").evaluate(reply)


def test_a_credential_does_not_show_its_keys() -> None:
    assert "key=" not in repr(PENCIL)


@pytest.mark.parametrize(
    "message",
    [
        b"n,," + b"m=" + b"a" * 500_000 + b",x",
        b"n,,n=user,r=abc" + b",a=b" * 125_000 + b",",
        b"n,a=" + b"=2C" * 160_000 + b"=,n=user,r=abc",
        b"n,,n=user,r=" + b"a" * (MAX_MESSAGE_BYTES - 11),
    ],
)
def test_a_message_that_is_too_long_is_refused_at_once(message: bytes) -> None:
    with pytest.raises(InvalidCredentials, match="too long"):
        server().evaluate(message)


def test_a_message_as_long_as_may_be_is_taken() -> None:
    assert server().evaluate(b"n,,n=user,r=" + b"a" * (MAX_MESSAGE_BYTES - 12)).startswith(b"r=aaa")
    extended = server()
    extended.evaluate(b"n,,n=user,r=abc")
    with pytest.raises(InvalidCredentials, match="the proof has a wrong length"):
        extended.evaluate(b"c=biws,r=abcserver-nonce" + b",a=b,p=AAAA" * 20)
