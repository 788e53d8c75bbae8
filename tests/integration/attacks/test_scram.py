"""SCRAM exchanges that were recorded, changed, weakened or invented."""

import base64
import hmac
import re
from collections.abc import Callable

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.security.scram import (
    MAX_ITERATIONS,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramClient,
    credential_of,
    salted_password,
)
from tests.integration.attacks.target import PASSWORDS, Guest, Target, add_scram_users, scram_client

GENERAL = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"


def final_by(key: bytes, first: bytes, challenge: bytes, *, binding: bytes = b"n,,", iterations: int = 4096) -> bytes:
    """A final message of somebody who has this client key, whatever else is wrong."""
    bare = b"c=" + base64.b64encode(binding) + b",r=" + nonce_of(challenge)
    stored_key = credential_of(SCRAM_SHA_256, salted("alice-secret", iterations), b"salt", iterations).stored_key
    proof = hmac.digest(stored_key, b",".join((first.removeprefix(b"n,,"), challenge, bare)), "sha256")
    return bare + b",p=" + base64.b64encode(bytes(a ^ b for a, b in zip(key, proof, strict=True)))


def nonce_of(challenge: bytes) -> bytes:
    found = re.match(rb"r=([^,]+)", challenge)
    assert found is not None
    return found[1]


def salted(password: str, iterations: int = 4096) -> bytes:
    return salted_password(SCRAM_SHA_256, password, b"salt", iterations)


def client_key(iterations: int = 4096) -> bytes:
    return hmac.digest(salted("alice-secret", iterations), b"Client Key", "sha256")


FIRST = b"n,,n=alice,r=attacker"
Final = Callable[[bytes], bytes]
FINALS: dict[str, Final] = {
    "channel binding that was not offered": lambda c: final_by(client_key(), FIRST, c, binding=b"y,,"),
    "channel binding of another kind": lambda c: final_by(client_key(), FIRST, c, binding=b"p=tls-unique,,0123"),
    "channel binding of another header": lambda c: final_by(client_key(), FIRST, c, binding=b"n,a=admin,"),
    "no channel binding": lambda c: final_by(client_key(), FIRST, c, binding=b""),
    "another iteration count": lambda c: final_by(client_key(4097), FIRST, c, iterations=4097),
    "one iteration": lambda c: final_by(client_key(1), FIRST, c, iterations=1),
    "a changed challenge": lambda c: final_by(client_key(), FIRST, c.replace(b"i=4096", b"i=1")),
    "the stored key instead of the client's": lambda c: final_by(
        credential_of(SCRAM_SHA_256, salted("alice-secret"), b"salt", 4096).stored_key, FIRST, c
    ),
    "the server's key instead of the client's": lambda c: final_by(
        credential_of(SCRAM_SHA_256, salted("alice-secret"), b"salt", 4096).server_key, FIRST, c
    ),
    "the client's nonce alone": lambda c: final_by(client_key(), FIRST, c).replace(nonce_of(c), b"attacker"),
    "a nonce that is only the end": lambda c: final_by(client_key(), FIRST, c).replace(
        nonce_of(c), nonce_of(c).removeprefix(b"attacker")
    ),
    "no proof": lambda c: b"c=biws,r=" + nonce_of(c) + b",p=",
    "a proof of zeros": lambda c: b"c=biws,r=" + nonce_of(c) + b",p=" + base64.b64encode(bytes(32)),
    "a proof that is too long": lambda c: b"c=biws,r=" + nonce_of(c) + b",p=" + base64.b64encode(bytes(6000)),
    "an endless final message": lambda c: b"c=biws,r=" + nonce_of(c) + b",x=1" * 20_000 + b",p=AAAA",
    "the first message again": lambda c: FIRST,
    "no text": lambda c: b"\xff\xfe\x00",
    "nothing": lambda c: b"",
}


def test_the_forged_message_is_right_where_nothing_is_wrong(target: Target) -> None:
    with target.guest("SASL") as guest:
        guest.handshake(SCRAM_SHA_256)
        challenge = guest.challenge(FIRST)
        assert guest.challenge(final_by(client_key(), FIRST, challenge)).startswith(b"v=")
        guest.metadata()


@pytest.mark.parametrize("attack", FINALS)
def test_a_final_message_that_is_wrong_in_one_thing(target: Target, attack: str) -> None:
    with target.guest("SASL") as guest:
        guest.handshake(SCRAM_SHA_256)
        assert guest.is_refused(FINALS[attack](guest.challenge(FIRST))) == GENERAL


FIRSTS = {
    "channel binding is required": b"p=tls-unique,,n=alice,r=x",
    "channel binding is possible": b"y,,n=alice,r=x",
    "a name with an escape that is none": b"n,,n=al=20ice,r=x",
    "a user as a token": b"n,,n=alice,r=x,tokenauth=true",
    "no nonce": b"n,,n=alice,r=",
    "a nonce of spaces": b"n,,n=alice,r=a b",
    "a huge nonce": b"n,,n=alice,r=" + b"x" * 90_000,
    "huge numbers": b"n,,n=alice,r=x,i=" + b"9" * 80_000,
    "thousands of extensions": b"n,,n=alice,r=x" + b",a=b" * 20_000,
    "thousands of escapes": b"n,a=" + b"=2C" * 30_000 + b"=,n=alice,r=x",
    "a mandatory extension of nothing": b"n,,m=,n=alice,r=x",
    "a name with a NUL": b"n,,n=alice\0,r=x",
    "a name of other letters": "n,,n=\u0430lice,r=x".encode(),
    "a full-width name, which SASLprep would make alice": "n,,n=\uff41lice,r=x".encode(),
    "a soft hyphen, which SASLprep would drop": "n,,n=al\u00adice,r=x".encode(),
}


@pytest.mark.parametrize("attack", FIRSTS)
def test_a_first_message_that_is_none(target: Target, attack: str) -> None:
    with target.guest("SASL") as guest:
        guest.handshake(SCRAM_SHA_256)
        assert guest.is_refused(FIRSTS[attack]) == GENERAL


def recorded(target: Target) -> tuple[bytes, bytes]:
    """The messages of a client whose exchange somebody has seen."""
    client = scram_client()
    with target.guest("SASL") as honest:
        honest.handshake(client.mechanism)
        challenge = honest.challenge(client.first())
        final = client.evaluate(challenge)
        assert final is not None
        honest.challenge(final)
    return client.first(), final


def test_a_recorded_exchange_is_of_no_use(target: Target) -> None:
    first, final = recorded(target)
    with target.guest("SASL") as thief:
        thief.handshake(SCRAM_SHA_256)
        thief.challenge(first)
        thief.is_refused(final)
    with target.guest("SASL") as thief:
        thief.handshake(SCRAM_SHA_256)
        nonce = nonce_of(thief.challenge(first))
        thief.is_refused(re.sub(rb"r=[^,]+", b"r=" + nonce, final))
    with target.guest("SASL") as thief:
        thief.handshake(SCRAM_SHA_256)
        thief.is_refused(final)


def test_a_final_message_of_another_connection_is_of_no_use(target: Target) -> None:
    with target.guest("SASL") as one, target.guest("SASL") as other:
        for guest in (one, other):
            guest.handshake(SCRAM_SHA_256)
        client = scram_client()
        final = client.evaluate(one.challenge(client.first()))
        other.challenge(client.first())
        assert final is not None
        other.is_refused(final)
        assert one.challenge(final).startswith(b"v=")


def test_a_proof_of_one_mechanism_is_none_for_the_other(target: Target) -> None:
    with target.guest("SASL") as guest:
        guest.handshake(SCRAM_SHA_512)
        client = ScramClient(SCRAM_SHA_256, "alice", PASSWORDS["alice"])
        final = client.evaluate(guest.challenge(client.first()))
        assert final is not None
        guest.is_refused(final)


def test_another_authorization_id_is_refused(target: Target) -> None:
    with target.guest("SASL") as guest:
        guest.handshake(SCRAM_SHA_256)
        told = guest.is_refused(b"n,a=admin,n=alice,r=x")
        assert told == "Authentication failed: Client requested an authorization id that is different from username"


def test_what_a_client_is_told_does_not_say_whether_the_user_exists(target: Target) -> None:
    """That the exchange of an unknown user is one message shorter is a limit that docs/security.md names."""

    def told(guest: Guest, user: str) -> str | None:
        return guest.scram(ScramClient(SCRAM_SHA_256, user, "wrong")).error_message

    with target.guest("SASL") as known, target.guest("SASL") as unknown:
        assert told(known, "alice") == told(unknown, "nobody") == GENERAL


def test_iterations_without_bound_are_not_taken(target: Target) -> None:
    """A log-in would make every client of that user compute for hours."""
    with target.client() as admin:
        for iterations in (MAX_ITERATIONS + 1, 2**31 - 1, 0, -1):
            codes = add_scram_users(admin, {"slow": "x"}, iterations)
            assert set(codes) == {ErrorCode.UNACCEPTABLE_CREDENTIAL}
