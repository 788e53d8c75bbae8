"""SCRAM credentials and delegation tokens: what is decided, stored, sent to brokers, and read again."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.controller.events import (
    AlterScramCredentials,
    ControllerEvent,
    PutDelegationToken,
    RemoveDelegationToken,
    ScramDeletion,
    ScramUpsertion,
)
from kaspar.metadata import ClusterImage, SqliteMetadata
from kaspar.metadata.deltas import apply_delta, decode_delta, delta_between, encode_delta
from kaspar.metadata.images import ImageUpdate, ImageVersion
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.security.delegation_tokens import DelegationToken
from kaspar.security.scram import SCRAM_SHA_256, SCRAM_SHA_512, credential_of
from tests.unit.controller.clusters import after, cluster, controller

TOKEN = DelegationToken("id", ("User", "alice"), ("User", "bob"), (("User", "carol"),), 10, 100, 200)


def upsertion(user: str, mechanism: int = 1, iterations: int = 4096) -> ScramUpsertion:
    return ScramUpsertion(user, mechanism, iterations, b"salt", b"salted")


def alter(image: ClusterImage, *changes: ScramUpsertion | ScramDeletion) -> tuple[ClusterImage, dict[str, ErrorCode]]:
    event = AlterScramCredentials(
        tuple(each for each in changes if isinstance(each, ScramDeletion)),
        tuple(each for each in changes if isinstance(each, ScramUpsertion)),
    )
    decision = controller().decide(image, event)
    return after(decision, image), {each.name: each.outcome.error for each in decision.reply}


def test_a_user_has_one_credential_for_each_mechanism() -> None:
    image, _ = alter(cluster(), upsertion("alice"), upsertion("bob"))
    image, _ = alter(image, upsertion("alice", 2, 8192))
    assert image.scram_credentials["alice"] == {
        SCRAM_SHA_256: credential_of(SCRAM_SHA_256, b"salted", b"salt", 4096),
        SCRAM_SHA_512: credential_of(SCRAM_SHA_512, b"salted", b"salt", 8192),
    }
    image, outcomes = alter(image, ScramDeletion("alice", 1), ScramDeletion("bob", 1))
    assert outcomes == {"alice": ErrorCode.NONE, "bob": ErrorCode.NONE}
    assert {user: set(each) for user, each in image.scram_credentials.items()} == {"alice": {SCRAM_SHA_512}}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([upsertion("u", iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion("u", iterations=16385)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion("u", 0)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([ScramDeletion("u", 3)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([ScramDeletion("u", 1)], ErrorCode.RESOURCE_NOT_FOUND),
        ([upsertion("u"), upsertion("u", 2)], ErrorCode.DUPLICATE_RESOURCE),
    ],
)
def test_what_is_refused_changes_nothing(changes: list[ScramUpsertion | ScramDeletion], code: ErrorCode) -> None:
    before = cluster()
    image, outcomes = alter(before, *changes)
    assert outcomes == {"u": code}
    assert image.scram_credentials == before.scram_credentials


def test_one_user_that_is_refused_does_not_concern_another() -> None:
    image, outcomes = alter(cluster(), upsertion("good"), upsertion("bad", 9))
    assert outcomes == {"good": ErrorCode.NONE, "bad": ErrorCode.UNSUPPORTED_SASL_MECHANISM}
    assert set(image.scram_credentials) == {"good"}


def put(image: ClusterImage, token: DelegationToken, now_ms: int, *, is_new: bool) -> ClusterImage:
    return after(controller().decide(image, PutDelegationToken(token, now_ms, is_new)), image)


def test_a_token_is_stored_changed_and_removed() -> None:
    image = put(cluster(), TOKEN, 10, is_new=True)
    later = replace(TOKEN, expiry_ms=150)
    image = put(image, later, 20, is_new=False)
    assert image.delegation_tokens == {"id": later}
    decision = controller().decide(image, RemoveDelegationToken("id"))
    assert after(decision, image).delegation_tokens == {}
    with pytest.raises(Refused) as refused:
        put(after(decision, image), later, 30, is_new=False)
    assert refused.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_expired_tokens_go_when_a_new_one_comes() -> None:
    image = put(cluster(), TOKEN, 10, is_new=True)
    image = put(image, replace(TOKEN, token_id="new", expiry_ms=500, max_ms=500), 101, is_new=True)
    assert set(image.delegation_tokens) == {"new"}


def secured_image() -> ClusterImage:
    image, _ = alter(cluster(), upsertion("a/b %é"), upsertion("a/b %é2", 2))
    return put(image, TOKEN, 10, is_new=True)


def test_other_brokers_get_the_same() -> None:
    image = secured_image()
    update = ImageUpdate(ImageVersion(1, 2), image, frozenset())
    received = apply_delta(None, decode_delta(encode_delta(delta_between(None, update)))).image
    assert received.scram_credentials == image.scram_credentials
    assert received.delegation_tokens == image.delegation_tokens
    without = controller().decide(image, RemoveDelegationToken("id")).steps[-1].image
    delta = delta_between((ImageVersion(1, 2), image), ImageUpdate(ImageVersion(1, 3), without, frozenset()))
    assert apply_delta(received, decode_delta(encode_delta(delta))).image.delegation_tokens == {}


def test_the_store_has_it_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        store = metadata.connect()
        await prepare_store(store)
        image = await load_image(store)
        events: list[ControllerEvent[Any]] = [
            AlterScramCredentials((), (upsertion("a/b %é"), upsertion("second", 2))),
            PutDelegationToken(TOKEN, 10, is_new=True),
        ]
        for event in events:
            (step,) = controller().decide(image, event).steps
            await store.transact(list(step.operations))
            image = step.image
        loaded = await load_image(store)
        assert loaded.scram_credentials == image.scram_credentials
        assert loaded.delegation_tokens == image.delegation_tokens
        await metadata.close()

    asyncio.run(scenario())
