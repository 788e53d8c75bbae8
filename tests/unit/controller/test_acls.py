"""ACLs are created once, deleted by filters, kept in the store, and refused in Kafka's words."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kaspar.acls import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import ErrorCode, Refused
from kaspar.controller import acls as decisions
from kaspar.controller.event_codec import decode_event, decode_reply, encode_event, encode_reply
from kaspar.controller.events import DONE, ControllerEvent, CreateAcls, DeleteAcls, DeletedAcls, Outcome
from kaspar.controller.registration import register_broker
from kaspar.controller.shell import ControllerShell
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.layout import acl_nodes
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.metadata.sqlite import SqliteMetadata
from tests.unit.controller.clusters import after, broker, controller


def acl(name: str = "t", **fields: Any) -> Acl:
    return Acl(
        ResourceType.TOPIC, name, PatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW
    )._replace(**fields)


def create(image: ClusterImage, *acls: Acl) -> tuple[ClusterImage, tuple[Outcome, ...]]:
    decision = controller().decide(image, CreateAcls(acls))
    return after(decision, image), decision.reply


def test_an_acl_that_is_there_is_created_once_and_reported_as_created() -> None:
    first, reply = create(ClusterImage("c"), acl(), acl("u"), acl())
    assert reply == (DONE, DONE, DONE)
    assert sorted(first.acls.values()) == [acl(), acl("u")]
    second, reply = create(first, acl())
    assert reply == (DONE,)
    assert second.acls == first.acls


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (acl(resource_type=ResourceType.ANY), "Invalid resourceType ANY"),
        (acl(pattern_type=PatternType.MATCH), "Invalid patternType MATCH"),
        (acl(pattern_type=PatternType.ANY), "Invalid patternType ANY"),
        (acl(operation=AclOperation.ANY), "Invalid operation ANY"),
        (acl(permission_type=AclPermissionType.ANY), "Invalid permissionType ANY"),
        (acl(""), "Resource name should not be empty"),
        (
            acl(principal="alice"),
            "Could not parse principal from `alice` "
            "(no colon is present separating the principal type from the principal name)",
        ),
    ],
)
def test_one_that_is_wrong_does_not_stop_the_others(wrong: Acl, message: str) -> None:
    image, reply = create(ClusterImage("c"), wrong, acl("u"))
    assert reply == (Outcome(ErrorCode.INVALID_REQUEST, message), DONE)
    assert list(image.acls.values()) == [acl("u")]


def test_each_filter_reports_what_it_selects_also_if_another_does_too() -> None:
    image, _ = create(ClusterImage("c"), acl("a"), acl("b"), acl("c"))
    event = DeleteAcls((AclFilter(resource_name="a"), AclFilter(resource_name="x"), AclFilter(principal="User:a")))
    decision = controller().decide(image, event)
    assert decision.reply == (
        DeletedAcls((acl("a"),)),
        DeletedAcls(()),
        DeletedAcls((acl("a"), acl("b"), acl("c"))),
    )
    assert after(decision, image).acls == {}


def test_a_request_deletes_a_limited_number(monkeypatch: pytest.MonkeyPatch) -> None:
    image, _ = create(ClusterImage("c"), acl("a"), acl("b"), acl("c"))
    monkeypatch.setattr(decisions, "MAX_CHANGES", 2)
    with pytest.raises(Refused, match="Cannot remove more than 2 acls"):
        controller().decide(image, DeleteAcls((AclFilter(),)))


def test_very_many_are_stored_in_several_transactions() -> None:
    """Every step leaves the buckets as the image says, whatever follows."""
    many = tuple(acl(f"{number:05}-" + "x" * 200) for number in range(5_000))
    decision = controller().decide(ClusterImage("c"), CreateAcls(many))
    assert len(decision.steps) > 1
    stored: dict[str, dict[str, Acl]] = {}
    for step in decision.steps:
        for operation in step.operations:
            stored[operation.path] = acl_nodes.decode_acls(getattr(operation, "value", b"{}"))
        assert {key: each for acls in stored.values() for key, each in acls.items()} == dict(step.image.acls)
    assert sorted(decision.steps[-1].image.acls.values()) == sorted(many)


def test_they_are_there_after_a_restart(tmp_path: Path) -> None:
    odd = acl("naïve/☃ %2F", principal="User:CN=\u2028,O=a;b", host="10.0.0.1", pattern_type=PatternType.PREFIXED)

    async def scenario() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        store = metadata.connect()
        await prepare_store(store)
        shell = ControllerShell(store, controller())
        await register_broker(store, broker(1))
        await shell.start()
        await shell.submit(CreateAcls((acl(), odd, acl("gone"))))
        await shell.submit(DeleteAcls((AclFilter(resource_name="gone"),)))
        expected = dict(shell.image.acls)
        await shell.stop()
        await metadata.close()
        again = await SqliteMetadata.open(tmp_path)
        loaded = await load_image(again.connect())
        await again.close()
        assert loaded.acls == expected
        assert set(expected.values()) == {acl(), odd}

    asyncio.run(scenario())


def test_events_and_replies_reach_a_controller_elsewhere() -> None:
    events_and_replies: tuple[tuple[ControllerEvent[Any], Any], ...] = (
        (CreateAcls((acl(), acl("u"))), (DONE, Outcome(ErrorCode.INVALID_REQUEST, "no"))),
        (DeleteAcls((AclFilter(resource_name="t"),)), (DeletedAcls((acl(),)),)),
    )
    for event, reply in events_and_replies:
        assert decode_event(*encode_event(event)) == event
        assert decode_reply(event, encode_reply(reply)) == reply
