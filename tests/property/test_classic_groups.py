"""Classic groups under random joins, syncs, heartbeats, leaves, time, refused appends and crashes.

After every step a second coordinator reads the log, and finds what the first one has stored. Assignments are sets of
partitions here, so that it can be seen that in one generation no partition has two owners.
"""

import json
from typing import Any

from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kaspar.base.errors import ErrorCode
from kaspar.config.broker.groups import GroupSettings
from kaspar.groups.classic.membership import ClassicMembership
from kaspar.groups.classic.state import ClassicState
from kaspar.groups.classic_group import ClassicGroup
from kaspar.groups.group import GroupTimer
from kaspar.groups.shard import GroupShard
from kaspar.protocol.messages.join_group import JoinGroupResponse
from kaspar.protocol.messages.sync_group import SyncGroupResponse
from tests.unit.groups.shell import DELAY_MS, REBALANCE_MS, SESSION_MS, Shell, Waiting

GROUPS = ("alpha", "beta")
INSTANCES = ("left", "right")
PARTITIONS = range(6)
LARGEST = 4
TRUTHFUL = {"range": b"r", "sticky": b"s"}
PROTOCOLS = (TRUTHFUL, {"sticky": b"s", "range": b"r"}, {"range": b"other", "sticky": b"s"}, {"range": b"r"})


numbers = st.integers(0, 7)


class Client:
    """A member as it sees itself: it believes the last response."""

    def __init__(self, group_id: str, instance_id: str | None) -> None:
        self.group_id = group_id
        self.instance_id = instance_id
        self.member_id = ""
        self.generation_id = -1
        self.leads: JoinGroupResponse | None = None
        self.waits_for: Waiting | None = None

    def hear(self) -> None:
        """Take in the response that has come."""
        waiting, self.waits_for = self.waits_for, None
        response: Any = waiting.response if waiting is not None else None
        if response is None:
            self.waits_for = waiting
        elif isinstance(response, JoinGroupResponse):
            self._joined(response)
        elif isinstance(response, SyncGroupResponse) and response.error_code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_INSTANCE_ID,
        ):
            self.member_id = ""

    def _joined(self, response: JoinGroupResponse) -> None:
        match ErrorCode(response.error_code):
            case ErrorCode.NONE:
                self.member_id = response.member_id
                self.generation_id = response.generation_id
                self.leads = (
                    response if response.leader == response.member_id and not response.skip_assignment else None
                )
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID:
                self.member_id = ""
            case _:
                pass


class ClassicGroups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shell = Shell()
        self.clients = [Client(GROUPS[number % 2], (None, None, *INSTANCES)[number // 2]) for number in range(8)]
        self.owned: dict[tuple[str, int, int], dict[int, str]] = {}
        """By group, life of the group and generation: which partition was handed to whom."""
        self.syncs: list[tuple[str, str, int, Waiting]] = []
        self.lives = dict.fromkeys(GROUPS, 0)
        self.has_refused = False

    @initialize(delay_ms=st.sampled_from((0, DELAY_MS)))
    def begin(self, delay_ms: int) -> None:
        self.shell = Shell(GroupSettings(group_initial_rebalance_delay_ms=delay_ms, group_max_size=LARGEST))

    # -- clients -------------------------------------------------------------------------------------------------------

    def _join(self, client: Client, protocols: dict[str, bytes], version: int) -> None:
        client.hear()
        client.waits_for = self.shell.join(
            client.member_id,
            group_id=client.group_id,
            instance_id=client.instance_id,
            protocols=protocols,
            version=version,
        )
        client.hear()

    def _sync(self, client: Client, *, forgets: bool) -> None:
        client.hear()
        assignments = {}
        if client.leads is not None and not forgets:
            members = [each.member_id for each in client.leads.members]
            assignments = {
                member_id: json.dumps(list(PARTITIONS[number :: len(members)])).encode()
                for number, member_id in enumerate(members)
            }
        ticket = self.shell.sync(
            client.member_id,
            client.generation_id,
            assignments,
            group_id=client.group_id,
            instance_id=client.instance_id,
        )
        self.syncs.append((client.group_id, client.member_id, client.generation_id, ticket))
        if ticket.response is not None and ticket.code is ErrorCode.NONE:
            stored = self.shell.classic(client.group_id).stored
            assert stored is not None
            assert stored.generation == client.generation_id
        client.waits_for = ticket
        client.hear()

    @rule(number=numbers, protocols=st.sampled_from(PROTOCOLS), version=st.sampled_from((0, 3, 5, 8, 9)))
    def join(self, number: int, protocols: dict[str, bytes], version: int) -> None:
        self._join(self.clients[number], protocols, version)

    @rule(number=numbers, forgets=st.booleans())
    def sync(self, number: int, forgets: bool) -> None:
        """Leaders share all partitions among the members in the response, or assign nothing."""
        self._sync(self.clients[number], forgets=forgets)

    @rule(
        numbers=st.lists(numbers, min_size=1, max_size=8, unique=True),
        version=st.sampled_from((3, 9)),
        silent=st.integers(0, 2),
    )
    def come_to_rest(self, numbers: list[int], version: int, silent: int) -> None:
        """These do what clients do: join, join again with the id that they are given, and ask for what is theirs."""
        for _ in range(2):
            for number in numbers:
                self._join(self.clients[number], TRUTHFUL, version)
        self.shell.advance(DELAY_MS)
        for number in numbers[: len(numbers) - silent]:
            self._sync(self.clients[number], forgets=False)

    @rule(number=numbers)
    def beat(self, number: int) -> None:
        client = self.clients[number]
        client.hear()
        code = self.shell.heartbeat(
            client.member_id, client.generation_id, group_id=client.group_id, instance_id=client.instance_id
        )
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.member_id = ""

    @rule(number=numbers)
    def leave(self, number: int) -> None:
        client = self.clients[number]
        client.hear()
        self.shell.leave((client.member_id, client.instance_id), group_id=client.group_id)

    @rule(number=numbers, joins=st.booleans(), version=st.sampled_from((8, 9)))
    def start_over(self, number: int, joins: bool, version: int) -> None:
        """A process ends without a word, and another one with the same settings starts."""
        self.clients[number] = Client(self.clients[number].group_id, self.clients[number].instance_id)
        if joins:
            self._join(self.clients[number], TRUTHFUL, version)

    # -- everything else -----------------------------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from((1, DELAY_MS, SESSION_MS - 1, SESSION_MS, REBALANCE_MS)))
    def wait(self, milliseconds: int) -> None:
        self.shell.advance(milliseconds)

    @rule(times=st.integers(1, 3))
    def refuse(self, times: int) -> None:
        """The log will refuse the next records, so many times."""
        self.has_refused = True
        self.shell.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
        self.shell.refuse_at_most = times

    @rule()
    def crash(self) -> None:
        self.shell.crash()

    @rule(group_id=st.sampled_from(GROUPS))
    def delete(self, group_id: str) -> None:
        ticket = self.shell.delete(group_id)
        if ticket.code is ErrorCode.NONE:
            self.lives[group_id] += 1

    # -- what always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def the_log_has_what_is_stored(self) -> None:
        again = GroupShard(self.shell.settings, 0)
        for record in self.shell.records:
            again.replay(record, None)
        assert _stored(again) == _stored(self.shell.shard)

    @property
    def memberships(self) -> dict[str, ClassicMembership]:
        return _memberships(self.shell.shard)

    @invariant()
    def a_stable_group_is_what_the_log_has(self) -> None:
        for group in self.memberships.values():
            event(f"{group.state.value} with {len(group.roster)} members")
            if group.state is not ClassicState.STABLE:
                continue
            stored = group.stored
            assert stored is not None
            assert (stored.generation, stored.protocol, stored.leader, stored.protocol_type) == (
                group.generation_id,
                group.protocol_name,
                group.roster.leader_id,
                group.protocol_type,
            )
            assert {member.member_id: member.assignment for member in stored.members} == {
                member.member_id: member.assignment for member in group.roster
            }

    @invariant()
    def something_will_happen(self) -> None:
        """Every state but Stable is left when somebody does what is expected of it, or when a timer fires."""
        for group_id, group in self.memberships.items():
            roster, timers = group.roster, self.shell.timers
            assert group.replacement is None
            match group.state:
                case ClassicState.PREPARING_REBALANCE:
                    assert group.initial_delay is not None or not roster.all_have_joined
                    assert GroupTimer(group_id, "join") in timers
                case ClassicState.COMPLETING_REBALANCE:
                    assert roster.leader_id in roster.pending_sync
                    assert GroupTimer(group_id, "sync") in timers
                case ClassicState.EMPTY:
                    assert self.has_refused or group.stored is None or not group.stored.members
            for member_id in (*roster.pending, *(member.member_id for member in roster)):
                assert GroupTimer(group_id, "session", member_id) in timers

    @invariant()
    def the_roster_adds_up(self) -> None:
        for group in self.memberships.values():
            roster = group.roster
            members = list(roster)
            assert roster.awaiting_join_count == sum(member.awaiting_join is not None for member in members)
            assert not roster.pending & {member.member_id for member in members}
            assert roster.pending_sync <= {member.member_id for member in members}
            assert roster.leader_id in {member.member_id for member in members} or not members
            assert members or roster.leader_id is None
            assert group.is_empty == (not members) or group.state is ClassicState.PREPARING_REBALANCE
            assert len(members) <= LARGEST or group.state is ClassicState.PREPARING_REBALANCE
            for member in members:
                if member.awaiting_join is not None:
                    assert group.state is ClassicState.PREPARING_REBALANCE
                if member.awaiting_sync is not None:
                    assert group.state is ClassicState.COMPLETING_REBALANCE
                    assert roster.leader_id != member.member_id

    @invariant()
    def one_owner_for_each_partition_of_a_generation(self) -> None:
        """A static member that comes back keeps its place under another id: partitions are counted for the instance."""
        still: list[tuple[str, str, int, Waiting]] = []
        for group_id, member_id, generation_id, ticket in self.syncs:
            if ticket.response is None:
                still.append((group_id, member_id, generation_id, ticket))
            elif ticket.code is ErrorCode.NONE and ticket.response.assignment:
                owners = self.owned.setdefault((group_id, self.lives[group_id], generation_id), {})
                who = member_id.split("-")[0] if member_id.startswith(INSTANCES) else member_id
                event("an assignment was handed out")
                for partition in json.loads(ticket.response.assignment):
                    assert owners.setdefault(partition, who) == who
        self.syncs = still

    @invariant()
    def waiting_tickets_have_no_response(self) -> None:
        """A ticket has no response if and only if a member of a group waits with it."""
        waiting = [
            ticket
            for group in self.memberships.values()
            for member in group.roster
            for ticket in (member.awaiting_join, member.awaiting_sync)
            if ticket is not None
        ]
        without_response = [ticket for ticket in self.shell.tickets if ticket.response is None]
        assert sorted(map(id, waiting)) == sorted(map(id, without_response))

    def teardown(self) -> None:
        """Left alone, every request gets a response and all groups become stable or empty."""
        self.shell.refuses = None
        self.shell.advance(10 * REBALANCE_MS)
        assert all(ticket.response is not None for ticket in self.shell.tickets)
        assert {group.state_name for group in self.shell.shard.groups.values()} <= {"Empty"}


def _stored(shard: GroupShard) -> dict[str, Any]:
    return {group_id: group.stored for group_id, group in _memberships(shard).items()}


def _memberships(shard: GroupShard) -> dict[str, ClassicMembership]:
    return {group_id: group.membership for group_id, group in shard.groups.items() if isinstance(group, ClassicGroup)}


TestClassicGroups = ClassicGroups.TestCase
TestClassicGroups.settings = settings(max_examples=250, stateful_step_count=40, deadline=None)
