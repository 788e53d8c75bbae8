"""Classic groups over the wire: every version of their requests, what is refused and in which words, what a restart
brings back. `--against kafka` runs the same tests there.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from tests.peers.against import broker_to_test
from tests.peers.observed import wait_until
from tests.peers.process import BrokerProcess
from tests.peers.raw_client import RawClient
from tests.peers.raw_groups import NO_TOPICS, RawGroups, RawMember
from tests.peers.raw_offsets import RawOffsets
from tests.peers.raw_transactions import GROUP as GROUP_COORDINATOR
from tests.peers.raw_transactions import find_coordinator, until_settled
from tests.peers.wire import leads

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.max.session.timeout.ms": "60000",
    "group.max.size": "3",
}
NOT_ASKED = -(2**31)

NewMember = Callable[..., RawMember]


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_to_test(request, tmp_path_factory.mktemp("broker"), SETTINGS) as running:
        yield running


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as client:
        yield client


@pytest.fixture
def groups(client: RawClient) -> RawGroups:
    return RawGroups(client)


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"group-{number}" for number in itertools.count())


@pytest.fixture
def group_id(client: RawClient, names: Iterator[str]) -> str:
    name = next(names)
    find_coordinator(client, name, GROUP_COORDINATOR)
    until_settled(partial(RawGroups(client).describe, name))
    return name


@pytest.fixture
def new_member(broker: BrokerProcess, group_id: str) -> Iterator[NewMember]:
    with ExitStack() as members:

        def create(group_id: str = group_id, **how: Any) -> RawMember:
            return members.enter_context(RawMember(broker.port, group_id, **how))

        yield create


def is_to_join(member: RawMember) -> None:
    wait_until(lambda: member.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS, "the member has to rejoin")


def together(*members: RawMember) -> list[RawMember]:
    """All of these come into the group, one after another, and are assigned their own ids. The leader is the first."""
    for count, newcomer in enumerate(members):
        newcomer.ask_to_join()
        here = members[:count]
        for member in here:
            is_to_join(member)
            member.send_join()
        responses = [member.joined() for member in (*here, newcomer)]
    leader, *followers = sorted(members, key=lambda member: member.member_id != responses[0].leader)
    for follower in followers:
        follower.send_sync()
    leader.send_sync({member.member_id: member.member_id.encode() for member in members})
    for member in members:
        assert member.synced().assignment == member.member_id.encode()
    return [leader, *followers]


# -- versions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(10))
def test_every_version_joins(new_member: NewMember, version: int) -> None:
    member = new_member(protocols={"range": NO_TOPICS, "roundrobin": NO_TOPICS})
    joined = member.join(version)
    assert (joined.generation_id, joined.leader, joined.skip_assignment) == (1, joined.member_id, False)
    assert joined.protocol_name == "range"
    assert joined.protocol_type == ("consumer" if version >= 7 else None)
    (only,) = joined.members
    assert (only.member_id, only.metadata) == (joined.member_id, NO_TOPICS)
    assert joined.member_id.startswith("raw-client-")


@pytest.mark.parametrize("version", range(6))
def test_every_version_syncs(new_member: NewMember, version: int) -> None:
    member = new_member()
    member.join()
    response = member.sync({member.member_id: b"all of it"}, version)
    assert (response.error_code, response.assignment) == (ErrorCode.NONE, b"all of it")
    says = version >= 5
    assert (response.protocol_type, response.protocol_name) == (("consumer", "range") if says else (None, None))


@pytest.mark.parametrize("version", range(5))
def test_every_version_beats(new_member: NewMember, version: int) -> None:
    (member,) = together(new_member())
    assert member.heartbeat(version) is ErrorCode.NONE
    member.generation_id += 1
    assert member.heartbeat(version) is ErrorCode.ILLEGAL_GENERATION
    member.member_id = "stranger"
    assert member.heartbeat(version) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(6))
def test_every_version_leaves(new_member: NewMember, groups: RawGroups, version: int) -> None:
    (member,) = together(new_member())
    assert member.leave(version) is ErrorCode.NONE
    assert groups.state(member.group_id) == "Empty"
    assert member.leave(version) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(7))
def test_every_version_describes(new_member: NewMember, groups: RawGroups, group_id: str, version: int) -> None:
    together(new_member(instance_id="one"))
    described = groups.describe(group_id, version)
    assert (described.error_code, described.group_state) == (ErrorCode.NONE, "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    (member,) = described.members
    assert member.group_instance_id == ("one" if version >= 4 else None)
    assert (member.client_id, member.client_host) == ("raw-client", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (NO_TOPICS, member.member_id.encode())
    assert described.authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", range(6))
def test_every_version_lists(new_member: NewMember, groups: RawGroups, group_id: str, version: int) -> None:
    together(new_member())
    listed = groups.listed(version)[group_id]
    assert listed.protocol_type == "consumer"
    assert listed.group_state == ("Stable" if version >= 4 else "")
    assert listed.group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize("version", range(3))
def test_every_version_deletes(new_member: NewMember, groups: RawGroups, group_id: str, version: int) -> None:
    (member,) = together(new_member())
    assert groups.delete(group_id, version=version) == {group_id: ErrorCode.NON_EMPTY_GROUP}
    member.leave()
    assert groups.delete(group_id, version=version) == {group_id: ErrorCode.NONE}
    assert groups.delete(group_id, version=version) == {group_id: ErrorCode.GROUP_ID_NOT_FOUND}
    assert group_id not in groups.listed()


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 3, 6, 9])
def test_a_group_has_a_name(new_member: NewMember, version: int) -> None:
    member = new_member("")
    member.send_join(version)
    refused = member.join_response()
    assert (refused.error_code, refused.member_id, refused.generation_id) == (ErrorCode.INVALID_GROUP_ID, "", -1)
    assert refused.protocol_name == (None if version >= 7 else "")
    assert member.heartbeat() is ErrorCode.INVALID_GROUP_ID
    assert member.sync().error_code == ErrorCode.INVALID_GROUP_ID
    assert member.leave() is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("session_timeout_ms", [99, 60_001])
def test_session_timeouts_have_bounds(new_member: NewMember, session_timeout_ms: int) -> None:
    member = new_member(session_timeout_ms=session_timeout_ms)
    member.send_join()
    assert member.join_response().error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_members_agree_on_a_protocol(new_member: NewMember) -> None:
    together(new_member())
    for stranger in (new_member(protocol_type="connect"), new_member(protocols={"another": NO_TOPICS})):
        stranger.send_join()
        assert stranger.join_response().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_sync_of_version_5_names_its_protocol(new_member: NewMember) -> None:
    (member,) = together(new_member())
    member.protocol_name = "another"
    assert member.sync().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_nobody_is_a_member_of_a_group_that_is_not_there(new_member: NewMember) -> None:
    member = new_member()
    member.member_id, member.generation_id = "raw-client-1", 1
    member.send_join()
    refused = member.join_response()
    assert (refused.error_code, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "raw-client-1")
    assert member.sync().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert member.leave() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_nobody(new_member: NewMember) -> None:
    together(*(new_member() for _ in range(3)))
    late = new_member()
    late.send_join()
    assert late.join_response().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_group_that_is_not_there_is_described_as_dead(groups: RawGroups) -> None:
    before, since = groups.describe("nobody", 5), groups.describe("nobody", 6)
    assert (before.error_code, before.group_state) == (ErrorCode.NONE, "Dead")
    assert (since.error_code, since.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert since.error_message == "Group nobody not found."


def test_authorized_operations_of_a_group_are_returned_on_request(
    new_member: NewMember, groups: RawGroups, group_id: str
) -> None:
    together(new_member())
    assert groups.describe(group_id, operations=True).authorized_operations == 3400
    assert groups.describe("nobody", operations=True).authorized_operations == NOT_ASKED


def test_lists_are_filtered(new_member: NewMember, groups: RawGroups, group_id: str) -> None:
    together(new_member())
    assert group_id in groups.listed(states=("stable", "dead"), types=("CLASSIC",))
    assert group_id not in groups.listed(states=("Empty",))
    assert group_id not in groups.listed(types=("consumer",))
    assert groups.listed(states=("no such state",)) == groups.listed(types=("no such type",)) == {}


# -- rebalances --------------------------------------------------------------------------------------------------------


def test_all_join_again_when_one_comes_and_when_one_goes(new_member: NewMember) -> None:
    leader, follower = together(new_member(), new_member())
    newcomer = new_member()
    newcomer.ask_to_join()
    is_to_join(leader)
    assert leader.sync().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    before = leader.generation_id
    leader.send_join()
    follower.send_join()
    assert {each.joined().generation_id for each in (newcomer, leader, follower)} == {before + 1}
    follower.leave()
    assert leader.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_waits_for_its_assignment_has_to_rejoin_when_another_joins(
    new_member: NewMember, groups: RawGroups, group_id: str
) -> None:
    leader, follower = together(new_member(), new_member())
    leader.send_join()
    # A follower that rejoins before that would get the current generation.
    wait_until(lambda: groups.state(group_id) == "PreparingRebalance", "the leader's request begins a rebalance")
    follower.send_join()
    leader.joined()
    follower.joined()
    follower.send_sync()
    newcomer = new_member()
    newcomer.ask_to_join()
    assert follower.synced().error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_follower_that_rejoins_unchanged_gets_the_current_generation(new_member: NewMember) -> None:
    leader, follower = together(new_member(), new_member())
    follower.send_join()
    again = follower.joined()
    assert (again.generation_id, again.leader, again.members) == (leader.generation_id, leader.member_id, ())
    assert leader.heartbeat() is ErrorCode.NONE


def test_a_silent_member_is_removed(new_member: NewMember, groups: RawGroups, group_id: str) -> None:
    member = new_member(session_timeout_ms=100, rebalance_timeout_ms=100)
    member.join()
    wait_until(lambda: groups.state(group_id) == "Empty", "the session ends")
    assert member.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


# -- static members ----------------------------------------------------------------------------------------------------


def test_an_instance_that_comes_back_is_given_its_place(new_member: NewMember) -> None:
    leader, follower = together(new_member(instance_id="a"), new_member(instance_id="b"))
    back = new_member(instance_id=follower.instance_id)
    response = back.join()
    assert response.generation_id == leader.generation_id
    assert response.member_id != follower.member_id
    assert back.sync().assignment == follower.member_id.encode()
    assert follower.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    follower.send_join()
    assert follower.join_response().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert follower.sync().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert follower.leave() is ErrorCode.FENCED_INSTANCE_ID
    assert leader.heartbeat() is ErrorCode.NONE


@pytest.mark.parametrize("version", [8, 9])
def test_a_leader_that_comes_back_does_not_assign_again(new_member: NewMember, version: int) -> None:
    leader, _ = together(new_member(instance_id="a"), new_member(instance_id="b"))
    back = new_member(instance_id=leader.instance_id)
    response = back.join(version)
    assert response.skip_assignment == (version >= 9)
    assert response.leader == (back.member_id if version >= 9 else leader.member_id)
    assert len(response.members) == (2 if version >= 9 else 0)


def test_instances_are_removed_by_name(new_member: NewMember, groups: RawGroups, group_id: str) -> None:
    together(new_member(instance_id="a"), new_member(instance_id="b"))
    assert groups.remove(group_id, "a", "b", "z") == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert groups.state(group_id) == "Empty"


# -- offsets and restarts ----------------------------------------------------------------------------------------------


def test_groups_come_back_after_a_stop_and_after_a_kill(
    broker: BrokerProcess, new_member: NewMember, client: RawClient, group_id: str
) -> None:
    client.create_topic("kept")
    wait_until(lambda: leads(broker.host, broker.port, "kept", range(1)), "the topic has a leader")
    leader, follower = together(
        new_member(session_timeout_ms=60_000), new_member(session_timeout_ms=60_000, instance_id="b")
    )
    RawOffsets(client, group_id).commit("kept", {0: 7}, generation=leader.generation_id, member_id=leader.member_id)
    for end in (broker.stop, broker.kill):
        end()
        broker.start()
        with RawClient(broker.port) as again:
            find_coordinator(again, group_id, GROUP_COORDINATOR)
            described = until_settled(partial(RawGroups(again).describe, group_id))
            assert described.group_state == "Stable"
            assert {each.member_id for each in described.members} == {leader.member_id, follower.member_id}
            assert RawOffsets(again, group_id).fetch("kept", 0)[0].offset == 7
        for member in (leader, follower):
            member.connect_again(broker.port)
            assert member.heartbeat() is ErrorCode.NONE
            assert member.sync().assignment == member.member_id.encode()
