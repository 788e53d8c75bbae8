"""Delegation tokens of others, tokens and sessions that have ended, and sessions that want to be somebody else."""

import base64
import time

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kaspar.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kaspar.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kaspar.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from kaspar.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kaspar.security.scram import SCRAM_SHA_256, ScramClient
from tests.integration.attacks.target import Target

AGAIN_AFTER_S = 1.1  # Kafka takes no re-authentication within the first second


def new_token(target: Target, owner: str, lifetime_ms: int = -1) -> CreateDelegationTokenResponse:
    with target.user(owner) as client:
        request = CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=lifetime_ms)
        created = client.call(request, CreateDelegationTokenResponse)
    assert created.error_code == ErrorCode.NONE
    return created


def bearer(token_id: str, hmac: bytes) -> ScramClient:
    return ScramClient(SCRAM_SHA_256, token_id, base64.b64encode(hmac).decode(), token_auth=True)


def log_in_with(target: Target, token_id: str, hmac: bytes) -> SaslAuthenticateResponse:
    with target.guest("SASL") as guest:
        return guest.scram(bearer(token_id, hmac))


def test_a_token_with_the_digest_of_another_one(target: Target) -> None:
    alices, bobs = new_token(target, "alice"), new_token(target, "bob")
    assert log_in_with(target, alices.token_id, alices.hmac).error_code == ErrorCode.NONE
    refusals = [
        log_in_with(target, alices.token_id, bobs.hmac),
        log_in_with(target, alices.token_id, b""),
        log_in_with(target, "*", alices.hmac),
        log_in_with(target, "alice", alices.hmac),
    ]
    assert {each.error_code for each in refusals} == {ErrorCode.SASL_AUTHENTICATION_FAILED}
    assert len({each.error_message for each in refusals}) == 1


def test_a_token_of_another_owner_is_neither_renewed_nor_expired_nor_seen(target: Target) -> None:
    token = new_token(target, "alice")
    with target.user("bob") as bob:
        renewed = bob.call(
            RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=1000), RenewDelegationTokenResponse
        )
        expired = bob.call(
            ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), ExpireDelegationTokenResponse
        )
        seen = bob.call(DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse)
    assert renewed.error_code == expired.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert token.token_id not in [each.token_id for each in seen.tokens]
    assert log_in_with(target, token.token_id, token.hmac).error_code == ErrorCode.NONE


def test_a_token_for_somebody_else_is_not_created(target: Target) -> None:
    with target.user("bob") as bob:
        request = CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name="admin", renewers=(), max_lifetime_ms=-1
        )
        response = bob.call(request, CreateDelegationTokenResponse)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert response.hmac == b""


def test_a_token_that_has_expired_is_refused_and_ends_its_session(target: Target) -> None:
    for lifetime_ms in (1000, 5000, 30_000):  # longer where the machine is too busy to use it in time
        token = new_token(target, "alice", lifetime_ms)
        with target.guest("SASL") as session:
            code = session.scram(bearer(token.token_id, token.hmac)).error_code
            while time.time() * 1000 <= token.expiry_timestamp_ms:
                time.sleep(0.05)
            if code == ErrorCode.NONE:
                with pytest.raises(ConnectionError):
                    session.metadata()
                break
    assert code == ErrorCode.NONE
    assert log_in_with(target, token.token_id, token.hmac).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_re_authentication_is_as_the_same_user_by_the_same_mechanism_and_right(target: Target) -> None:
    with (
        target.user("alice", "SHORT") as another,
        target.user("alice", "SHORT") as otherwise,
        target.user("alice", "SHORT") as wrong,
        target.user("alice", "SHORT") as impatient,
        target.user("alice", "SHORT") as honest,
    ):
        time.sleep(AGAIN_AFTER_S)
        for client in (another, wrong, impatient, honest):
            client.handshake("PLAIN")
        told = another.is_refused(b"\0admin\0admin-secret")
        assert told == "Cannot change principals during re-authentication from User.alice: User.admin"
        otherwise.handshake(SCRAM_SHA_256)
        assert "is not supported for re-authentication" in otherwise.is_refused(b"n,,n=alice,r=x")
        wrong.is_refused(b"\0alice\0wrong")
        with pytest.raises(ConnectionError):  # nothing is served in the middle of it
            impatient.metadata()
        honest.challenge(b"\0alice\0alice-secret")
        honest.metadata()


def test_a_log_in_that_is_repeated_without_need_changes_nothing(target: Target) -> None:
    """The session does not end, so there is nothing to authenticate again for (KIP-368)."""
    with target.user("alice") as alice:
        response = alice.call(SaslAuthenticateRequest(auth_bytes=b"\0admin\0admin-secret"), SaslAuthenticateResponse, 2)
        assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert alice.create_topic("as-admin") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
