"""Bugs planted into the product, one at a time, to show that the simulation finds such ones.

Each is a plausible mistake in one place, and breaks one rule that replication depends on. Some have been real: the
simulation found them.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import msgspec

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, Offset
from kaspar.broker.cluster.membership import Membership
from kaspar.broker.fetch import reading
from kaspar.broker.hosting import leadership_of
from kaspar.broker.produce import delayed_produce, request_append
from kaspar.broker.replication.in_sync import AlterPartitionManager
from kaspar.controller import brokers, elections, fence, in_sync
from kaspar.controller.events import IsrOutcome
from kaspar.controller.fence import Fence
from kaspar.metadata.image import NO_LEADER, PartitionImage
from kaspar.metadata.store import ANY_VERSION, Operation, Put, UnknownOutcome
from kaspar.replication import fetches
from kaspar.replication.fetches import PartitionFetch, Position, Verdict
from kaspar.replication.partition import Partition
from kaspar.replication.state import Leadership, PartitionState
from kaspar.storage import Log, LogManager
from kaspar.storage.producers import replay


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    mistake: str
    seed: int | None
    """The first that finds it, when this was last measured; None if none did."""
    found: int
    of: int
    """By how many of the first seeds, when this was last measured."""
    plant: Callable[[], contextlib.AbstractContextManager[object]]

    @property
    def found_within(self) -> int:
        """How many seeds it takes with near certainty, whatever has changed since. A few finds say little of that."""
        estimate = 8 * self.of // max(1, self.found)
        return estimate if self.found >= 4 else max(estimate, 400)

    @property
    def is_found_soon(self) -> bool:
        """Whether it can be looked for in every run of the tests: it is known to be found by many seeds."""
        return self.found >= 4 and self.found_within <= 100


MUTATIONS: list[Mutation] = []


def mutation(
    mistake: str, *, seed: int | None, found: int, of: int
) -> Callable[[Callable[[], contextlib.AbstractContextManager[object]]], Mutation]:
    """`python -m tests.sim.hunting` measures the numbers."""

    def register(plant: Callable[[], contextlib.AbstractContextManager[object]]) -> Mutation:
        planted = Mutation(plant.__name__, mistake, seed, found, of, plant)
        MUTATIONS.append(planted)
        return planted

    return register


# -- the controller ----------------------------------------------------------------------------------------------------


@mutation(
    "a change of in-sync replicas is carried out whatever state of the partition it is based on",
    seed=38,
    found=1,
    of=38,
)
def isr_change_without_version() -> Any:
    check = in_sync._check

    def without_version(image: Any, partition: PartitionImage, leader: BrokerId, change: Any) -> None:
        epochs = {"leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch}
        same = msgspec.structs.replace(change, **epochs)
        check(image, partition._replace(leader=leader), leader, same)

    return mock.patch.object(in_sync, "_check", without_version)


@mutation("a controller writes without regard to whether another one has written since", seed=2, found=1, of=2)
def fence_ignored() -> Any:
    def put(path: str, value: bytes, version: int = ANY_VERSION) -> Put:
        return Put(path, value)

    return mock.patch.object(fence, "Put", put)


@mutation("a leader is elected outside the in-sync replicas while none of those is up", seed=3, found=3, of=40)
def leader_outside_isr() -> Any:
    clean = elections._clean_leader

    def any_leader(old: PartitionImage, wanted: PartitionImage, electorate: Any, election: Any) -> BrokerId:
        leader = clean(old, wanted, electorate, election)
        return leader if leader != NO_LEADER else elections._unclean_leader(wanted, electorate)

    return mock.patch.object(elections, "_clean_leader", any_leader)


@mutation("a replica that restarted after a crash stays in sync", seed=8, found=5, of=21)
def crashed_replica_in_sync() -> Any:
    seen = brokers.brokers_seen

    def all_clean(image: Any, event: Any, rules: Any) -> Any:
        clean = {each: replace(broker, clean_start=True, last_crash=0) for each, broker in event.brokers.items()}
        return seen(image, type(event)(clean), rules)

    return mock.patch.object(brokers, "brokers_seen", all_clean)


@mutation("a broker joins the in-sync replicas by what it had before it restarted (KIP-903)", seed=4, found=1, of=4)
def broker_epochs_ignored() -> Any:
    ineligible, fetched = in_sync._ineligible, PartitionState.follower_fetched

    def without_epochs(image: Any, partition: PartitionImage, leader: BrokerId, change: Any) -> Any:
        return ineligible(image, partition, leader, msgspec.structs.replace(change, new_isr_epochs=()))

    def any_epoch(state: PartitionState, fetch: Any) -> bool:
        return fetched(state, fetch._replace(broker_epoch=-1))

    return _patched((in_sync, "_ineligible", without_epochs), (PartitionState, "follower_fetched", any_epoch))


@mutation("an eligible replica that restarted after a crash stays eligible (KIP-966)", seed=4, found=1, of=4)
def crashed_replica_eligible() -> Any:
    with_eligible = elections._with_eligible

    def keeping(old: PartitionImage, wanted: PartitionImage, rules: Any, electorate: Any) -> PartitionImage:
        return with_eligible(old, wanted, rules, replace(electorate, crashed=frozenset()))

    return mock.patch.object(elections, "_with_eligible", keeping)


@mutation(
    "a change of in-sync replicas is carried out for a broker that has been restarted since", seed=145, found=1, of=145
)
def broker_epoch_of_the_leader_ignored() -> Any:
    return mock.patch.object(in_sync, "check_broker_epoch", return_value=None)


@mutation("a controller takes a write for done whose outcome it does not know", seed=12, found=1, of=12)
def unknown_outcome_taken_for_done() -> Any:
    commit = Fence.commit

    async def hopeful(one: Fence, operations: tuple[Operation, ...]) -> None:
        transact = one.store.transact

        async def done(all_operations: Sequence[Operation]) -> None:
            with contextlib.suppress(UnknownOutcome):
                await transact(all_operations)

        with mock.patch.object(one.store, "transact", done):
            await commit(one, operations)

    return mock.patch.object(Fence, "commit", hopeful)


# -- leaders -----------------------------------------------------------------------------------------------------------


@mutation(
    "the high watermark does not wait for a replica that the leader has asked to be in sync (KIP-497)",
    seed=11,
    found=1,
    of=11,
)
def commit_without_maximal_isr() -> Any:
    return _patched(
        (PartitionState, "maximal_isr", property(lambda state: state.leadership.in_sync_replicas)),
        (PartitionState, "_is_about_to_join", lambda *_: False),
    )


@mutation("a leader drops a replica from the in-sync ones before the controller has", seed=3, found=5, of=20)
def shrink_before_commit() -> Any:
    def maximal(state: PartitionState) -> Any:
        return state.leadership.in_sync_replicas if state.pending is None else state.pending.isr

    return mock.patch.object(PartitionState, "maximal_isr", property(maximal))


@mutation(
    "the high watermark advances below min.insync.replicas, also where others are eligible (KIP-966)",
    seed=30,
    found=1,
    of=30,
)
def commit_below_min_isr() -> Any:
    return _patched(
        (PartitionState, "effective_min_isr", property(lambda state: 1)),
    )


@mutation("acks=all is acknowledged once the leader has the records", seed=1, found=5, of=5)
def acknowledged_on_append() -> Any:
    def never(acks: int, partition: Partition) -> bool:
        return False

    return _patched((request_append, "waits_for_commit", never), (delayed_produce, "waits_for_commit", never))


@mutation("a new leader takes all that it has for committed", seed=2, found=1, of=2)
def committed_on_election() -> Any:
    decide_role = PartitionState.decide_role

    def committed(state: PartitionState, leadership: Any, **named: Any) -> bool:
        begins = decide_role(state, leadership, **named)
        if begins and state.leader_epoch_start_offset >= 0:
            state.high_watermark = max(state.high_watermark, Offset(named["log_end_offset"]))
        return begins

    return mock.patch.object(PartitionState, "decide_role", committed)


@mutation(
    "a leader counts fetches of followers that are in an older leader epoch, whatever they have", seed=2, found=4, of=40
)
def stale_fetches_counted() -> Any:
    check_epoch = PartitionState.check_epoch

    def lenient(state: PartitionState, requested: int) -> None:
        try:
            check_epoch(state, requested)
        except Refused as refused:
            if refused.code is not ErrorCode.FENCED_LEADER_EPOCH:
                raise

    def no_divergence(log: Any, last_fetched_epoch: int, fetch_offset: int) -> None:
        return None

    return _patched((PartitionState, "check_epoch", lenient), (reading, "diverging_epoch", no_divergence))


@mutation("a follower joins the in-sync replicas as soon as it fetches", seed=1, found=5, of=8)
def joins_while_behind() -> Any:
    expand = PartitionState.maybe_expand

    def at_once(state: PartitionState, candidate: BrokerId) -> Any:
        follower = state.followers.get(candidate)
        if follower is None:
            return None
        end, follower.log_end_offset = follower.log_end_offset, Offset(1 << 40)
        try:
            return expand(state, candidate)
        finally:
            follower.log_end_offset = end

    return mock.patch.object(PartitionState, "maybe_expand", at_once)


@mutation(
    "a proposal for the in-sync replicas is forgotten when the response to an earlier one arrives",
    seed=10,
    found=1,
    of=10,
)
def proposal_forgotten() -> Any:
    def drop(manager: AlterPartitionManager, partition: Partition, proposal: object) -> None:
        manager._proposals.pop(partition, None)

    return mock.patch.object(AlterPartitionManager, "_drop", drop)


@mutation("a new leader says where its log ends before it knows what is committed (KIP-207)", seed=24, found=1, of=24)
def end_before_commit_is_known() -> Any:
    return mock.patch.object(PartitionState, "is_high_watermark_behind", property(lambda state: False))


@mutation(
    "a broker obeys a decision about a partition that is older than the one it knows, and hears of what it has asked "
    "for before it has the image",
    seed=3,
    found=1,
    of=3,
)
def older_decisions_obeyed() -> Any:
    """The first alone changes nothing: images come in order (FollowedImage.receive), and a leader does not act by the
    responses to what it has asked for (AlterPartitionManager).
    """
    decide_role, finish = PartitionState.decide_role, AlterPartitionManager._finish

    def obedient(state: PartitionState, leadership: Leadership, **named: Any) -> bool:
        known = state.leadership
        if leadership.leader_epoch == known.leader_epoch and leadership.partition_epoch < known.partition_epoch:
            state.leadership = replace(known, partition_epoch=leadership.partition_epoch - 1)
        return decide_role(state, leadership, **named)

    def impatient(manager: AlterPartitionManager, partition: Partition, proposal: Any, outcome: IsrOutcome) -> bool:
        has_to_retry = finish(manager, partition, proposal, outcome)
        if outcome.partition is not None and partition.state.pending is proposal:
            partition.lead_or_follow(leadership_of(outcome.partition))
        return has_to_retry

    return _patched((PartitionState, "decide_role", obedient), (AlterPartitionManager, "_finish", impatient))


# -- followers ---------------------------------------------------------------------------------------------------------


@mutation(
    "a follower truncates its log to its high watermark when it has a new leader (before KIP-101)",
    seed=2,
    found=5,
    of=11,
)
def truncation_to_high_watermark() -> Any:
    init = PartitionFetch.__init__

    def truncating(fetch: PartitionFetch, *arguments: Any, **named: Any) -> None:
        init(fetch, *arguments, **named)
        fetch.truncate_to = named["high_watermark"]

    return mock.patch.object(PartitionFetch, "__init__", truncating)


@mutation("a follower appends after its log's end, whatever it has there", seed=2, found=3, of=40)
def no_comparison_of_epochs() -> Any:
    return mock.patch.object(reading, "diverging_epoch", return_value=None)


@mutation(
    "a follower truncates to where the leader's epoch ends, without a look at its own epochs (before KIP-279)",
    seed=2,
    found=1,
    of=2,
)
def truncation_by_the_leaders_word() -> Any:
    return mock.patch.object(
        fetches, "truncation_offset", lambda log, diverging: min(diverging.end_offset, log.log_end_offset)
    )


@mutation("a follower learns nothing about producers from what it copies", seed=2, found=5, of=11)
def followers_forget_producers() -> Any:
    return mock.patch.object(replay, "remember_batch", return_value=None)


@mutation(
    "a follower appends what it asked for in an earlier leader epoch, or from another offset", seed=68, found=1, of=68
)
def stale_responses_appended() -> Any:
    judge = PartitionFetch.judge

    def careless(fetch: PartitionFetch, asked: Position, error_code: int, diverging: Any) -> Verdict:
        return judge(fetch, fetch.position, error_code, diverging)

    return mock.patch.object(PartitionFetch, "judge", careless)


@mutation("a broker that stops in order does not sync its logs", seed=3, found=1, of=3)
def stopped_without_sync() -> Any:
    close_directory = LogManager._close_directory

    def unsynced(logs: LogManager, *arguments: Any) -> None:
        with mock.patch.object(Log, "flush", lambda log, up_to=None: log.log_end_offset):
            close_directory(logs, *arguments)

    return mock.patch.object(LogManager, "_close_directory", unsynced)


# -- membership --------------------------------------------------------------------------------------------------------


@mutation("a broker leads by the first image that it gets, which may be from before its crash", seed=10, found=1, of=10)
def leads_before_registered() -> Any:
    start = Membership.start

    def leading(membership: Membership, store: Any) -> None:
        with mock.patch.object(Membership, "_resign", return_value=None):
            start(membership, store)

    return mock.patch.object(Membership, "start", leading)


@mutation(
    "a broker that lost its session before the controller saw it registers again as if it had not crashed",
    seed=18,
    found=1,
    of=18,
)
def crash_hidden_by_lost_session() -> Any:
    has_crashed = brokers._has_crashed

    def as_it_says(image: Any, broker: Any) -> bool:
        return not broker.clean_start and has_crashed(image, broker)

    return mock.patch.object(brokers, "_has_crashed", as_it_says)


def _patched(*patches: tuple[Any, str, object]) -> contextlib.AbstractContextManager[object]:
    @contextlib.contextmanager
    def all_of_them() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for target, name, value in patches:
                stack.enter_context(mock.patch.object(target, name, value))
            yield

    return all_of_them()
