"""The states of a consumer group and of its members: the tables in the code, and the same in the documentation."""

import re
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.groups.consumer.member import Member, OwnedPartitions, Partitions
from kaspar.groups.consumer.reconciliation import Goal, reconcile
from kaspar.groups.consumer.states import MEMBER_TRANSITIONS, GroupState, MemberState
from kaspar.protocol.messages.consumer_group_heartbeat import RequestTopicPartitions
from tests.unit.groups.consumer.shell import topic_id

PAGE = Path(__file__).parents[4] / "docs" / "groups.md"
T = topic_id("orders")


def drawn(page: str) -> dict[tuple[MemberState, MemberState], str]:
    section = page[page.index("### States of a member") :]
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (.+?) \|$", section, re.MULTILINE)
    return {
        (MemberState[source], MemberState[to]): why for source, to, why in rows if source in MemberState.__members__
    }


def test_the_page_has_the_transitions_of_the_table_with_their_reasons() -> None:
    assert drawn(PAGE.read_text(encoding="utf-8")) == {
        (source, to): why for source, targets in MEMBER_TRANSITIONS.items() for to, why in targets.items()
    }


def test_the_page_names_every_state_of_a_group() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("### States of a consumer group") : page.index("### States of a member")]
    for state in GroupState:
        assert f"| {state.value} |" in section


def test_nobody_goes_to_a_state_that_is_not_known() -> None:
    assert all(MemberState.UNKNOWN not in targets for targets in MEMBER_TRANSITIONS.values())


def test_a_number_that_is_not_known_is_an_unknown_state() -> None:
    assert MemberState.of(99) is MemberState.UNKNOWN


# -- one step of a member ----------------------------------------------------------------------------------------------


def owning(*partitions: int, epoch: int = 1) -> OwnedPartitions:
    return {T: dict.fromkeys(partitions, epoch)} if partitions else {}


def goal(
    *target: int,
    epoch: int = 2,
    taken: tuple[int, ...] = (),
    owned: tuple[int, ...] | None = None,
    subscribed: bool = True,
    changed: bool = False,
) -> Goal:
    partitions: Partitions = {T: frozenset(target)} if target else {}
    return Goal(
        epoch=epoch,
        target=partitions,
        subscribed={T} if subscribed else set(),
        subscription_changed=changed,
        is_owned=lambda topic, partition: partition in taken,
        owned=None if owned is None else [RequestTopicPartitions(topic_id=T, partitions=owned)],
    )


def member(
    *assigned: int, state: MemberState = MemberState.STABLE, epoch: int = 1, revoking: tuple[int, ...] = ()
) -> Member:
    return Member(
        "a", member_epoch=epoch, state=state, assigned=owning(*assigned), pending_revocation=owning(*revoking)
    )


def test_a_member_at_its_target_stays_as_it_is() -> None:
    there = member(0, epoch=2)
    assert reconcile(there, goal(0)) is there


def test_a_member_that_has_its_new_target_keeps_what_it_has() -> None:
    before = member(0, 1)
    after = reconcile(before, goal(0, 1, taken=(0, 1)))
    assert (after.member_epoch, after.previous_member_epoch, after.state) == (2, 1, MemberState.STABLE)
    assert after.assigned is before.assigned
    assert after.pending_revocation == {}


def test_a_member_takes_what_is_free_and_remembers_when() -> None:
    after = reconcile(member(0), goal(0, 1))
    assert (after.member_epoch, after.previous_member_epoch, after.state) == (2, 1, MemberState.STABLE)
    assert after.assigned == {T: {0: 1, 1: 2}}


def test_a_member_gives_up_before_it_takes() -> None:
    after = reconcile(member(0, 1), goal(1, 2))
    assert (after.member_epoch, after.state) == (1, MemberState.UNREVOKED_PARTITIONS)
    assert (after.assigned, after.pending_revocation) == (owning(1), owning(0))


def test_a_member_that_has_given_up_already_need_not_be_asked() -> None:
    after = reconcile(member(0, 1), goal(1, 2, owned=(1,)))
    assert (after.member_epoch, after.state) == (2, MemberState.STABLE)


@pytest.mark.parametrize("owned", [None, (0, 1), (0,)])
def test_a_member_that_has_not_said_that_it_gave_up_waits(owned: tuple[int, ...] | None) -> None:
    before = member(1, state=MemberState.UNREVOKED_PARTITIONS, revoking=(0,))
    assert reconcile(before, goal(1, 2, owned=owned)) is before


def test_a_member_that_said_so_goes_on() -> None:
    before = member(1, state=MemberState.UNREVOKED_PARTITIONS, revoking=(0,))
    after = reconcile(before, goal(1, 2, taken=(2,), owned=(1,)))
    assert (after.member_epoch, after.state) == (2, MemberState.UNRELEASED_PARTITIONS)
    assert after.pending_revocation == {}


def test_a_member_gets_back_what_it_had_to_give_up_if_the_target_has_changed_its_mind() -> None:
    before = member(1, state=MemberState.UNREVOKED_PARTITIONS, revoking=(0,))
    after = reconcile(before, goal(0, 1, epoch=3, taken=(0, 1), owned=(1,)))
    assert after.state is MemberState.STABLE
    assert after.assigned == {T: {0: 3, 1: 1}}


def test_a_member_waits_for_what_others_have_and_takes_the_rest() -> None:
    after = reconcile(member(), goal(0, 1, taken=(1,)))
    assert (after.state, after.assigned) == (MemberState.UNRELEASED_PARTITIONS, owning(0, epoch=2))
    later = reconcile(after, goal(0, 1))
    assert (later.state, later.assigned) == (MemberState.STABLE, owning(0, 1, epoch=2))


def test_a_member_that_waits_may_have_to_give_up() -> None:
    before = member(0, state=MemberState.UNRELEASED_PARTITIONS)
    assert reconcile(before, goal(1, epoch=3)).state is MemberState.UNREVOKED_PARTITIONS


def test_a_member_gets_nothing_that_it_does_not_read() -> None:
    assert reconcile(member(), goal(0, subscribed=False)).assigned == {}
    after = reconcile(member(0), goal(0, subscribed=False))
    assert (after.state, after.assigned) == (MemberState.UNREVOKED_PARTITIONS, {})


def test_a_changed_subscription_takes_away_at_once() -> None:
    after = reconcile(member(0, epoch=2), goal(0, subscribed=False, changed=True))
    assert (after.state, after.member_epoch) == (MemberState.UNREVOKED_PARTITIONS, 2)
    assert after.pending_revocation == owning(0)


def test_a_member_in_an_unknown_state_has_to_begin_again() -> None:
    lost = member(0)._replace(state=MemberState.UNKNOWN)
    for owned in (None, (0,)):
        with pytest.raises(Refused) as refused:
            reconcile(lost, goal(0, owned=owned))
        assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    begun = reconcile(lost, goal(0)._replace(owned=[]))
    assert (begun.state, begun.member_epoch) == (MemberState.STABLE, 2)
