"""How followers join and leave the in-sync replicas, as in Kafka's Partition."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import Offset
from kaspar.replication.in_sync import AfterRefusal, IsrProposal
from kaspar.replication.state import PartitionState
from tests.unit.replication.states import LAG_MS, ME, OTHER, THIRD, Cluster, decide, fetched, leadership, leading


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def state(cluster: Cluster) -> PartitionState:
    """Leads ten records, seven of them committed, alone in sync."""
    state = leading(ME, cluster=cluster)
    state.local_end_moved(Offset(7))
    return state


def proposed(state: PartitionState) -> IsrProposal:
    fetched(state, OTHER, 10)
    proposal = state.maybe_expand(OTHER)
    assert proposal is not None
    return proposal


def test_a_follower_with_all_that_is_committed_joins(state: PartitionState) -> None:
    fetched(state, OTHER, 6)
    assert state.maybe_expand(OTHER) is None
    fetched(state, OTHER, 7)
    proposal = state.maybe_expand(OTHER)
    assert proposal is not None
    assert (proposal.isr, proposal.added) == ((ME, OTHER), OTHER)
    assert proposal.broker_epochs == (-1, 1)
    assert state.leadership.in_sync_replicas == (ME,), "it is not committed yet"


def test_a_follower_must_have_what_the_leader_had_when_its_epoch_began(cluster: Cluster) -> None:
    """Kafka's Partition.isFollowerInSync: the high watermark of a new leader may be behind."""
    state = PartitionState(ME, cluster, Offset(2))
    decide(state, leadership(in_sync=(ME, THIRD)), end=8)
    fetched(state, OTHER, 5)
    assert state.maybe_expand(OTHER) is None
    fetched(state, OTHER, 8)
    assert state.maybe_expand(OTHER) is not None


def test_kip_497_high_watermark_waits_for_whoever_was_asked_for(state: PartitionState, cluster: Cluster) -> None:
    cluster.replica_lag_time_max_ms = 0
    proposed(state)
    assert state.maximal_isr == (ME, OTHER)
    state.local_end_moved(Offset(12))
    fetched(state, OTHER, 11, leader_end=12, now_ms=5)
    assert state.high_watermark == 11


def test_a_follower_that_keeps_up_holds_the_high_watermark_until_it_has_joined(state: PartitionState) -> None:
    fetched(state, OTHER, 10, leader_end=10)
    assert not state.local_end_moved(Offset(9)) or state.high_watermark == 9
    state.local_end_moved(Offset(12))
    assert state.high_watermark == 10, "no proposal is needed: it is caught up, so it can join"


def test_a_follower_that_cannot_join_holds_nothing_back(state: PartitionState, cluster: Cluster) -> None:
    fetched(state, OTHER, 7, leader_end=7)
    del cluster.epochs[OTHER]
    state.local_end_moved(Offset(12))
    assert state.high_watermark == 12


def test_one_change_is_under_way_at_a_time(state: PartitionState) -> None:
    proposed(state)
    fetched(state, THIRD, 10)
    assert state.maybe_expand(THIRD) is None
    assert state.maybe_shrink(Offset(10), 10 * LAG_MS) is None


def test_a_replica_that_is_down_or_shutting_down_does_not_join(state: PartitionState, cluster: Cluster) -> None:
    del cluster.epochs[OTHER]
    fetched(state, OTHER, 10)
    assert state.maybe_expand(OTHER) is None


def test_kip_903_what_a_broker_fetched_before_its_restart_counts_for_nothing(
    state: PartitionState, cluster: Cluster
) -> None:
    fetched(state, OTHER, 10, broker_epoch=1)
    cluster.epochs[OTHER] = 2
    assert state.maybe_expand(OTHER) is None
    with pytest.raises(Refused) as refusal:
        fetched(state, OTHER, 10, broker_epoch=1)
    assert refusal.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    fetched(state, OTHER, 10, broker_epoch=2)
    assert state.maybe_expand(OTHER) is not None


def test_kip_903_a_broker_that_the_image_does_not_know_in_this_epoch_has_to_wait(state: PartitionState) -> None:
    fetched(state, OTHER, 10, broker_epoch=5)
    assert state.maybe_expand(OTHER) is None


def test_the_image_ends_a_proposal_that_was_carried_out(state: PartitionState) -> None:
    proposed(state)
    decide(state, leadership(partition_epoch=1, in_sync=(ME, OTHER)), end=10)
    assert state.pending is None
    assert state.leadership.in_sync_replicas == (ME, OTHER)


def test_an_outcome_after_the_image_changes_nothing(state: PartitionState) -> None:
    proposal = proposed(state)
    decide(state, leadership(partition_epoch=2, in_sync=(ME, THIRD)), end=10)
    decide(state, leadership(partition_epoch=1, in_sync=(ME, OTHER)), end=10)
    assert state.leadership.in_sync_replicas == (ME, THIRD)
    assert state.isr_refused(proposal, ErrorCode.NOT_CONTROLLER) is AfterRefusal.WAIT


def test_the_outcome_of_an_earlier_proposal_does_not_end_a_later_one(state: PartitionState) -> None:
    first = proposed(state)
    decide(state, leadership(partition_epoch=1), end=10)
    second = state.maybe_expand(OTHER)
    assert second is not None
    assert state.isr_refused(first, ErrorCode.INELIGIBLE_REPLICA) is AfterRefusal.WAIT
    assert state.pending is second


@pytest.mark.parametrize(
    ("code", "decided", "is_pending"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, AfterRefusal.REVERT, False),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, AfterRefusal.REVERT, False),
        (ErrorCode.FENCED_LEADER_EPOCH, AfterRefusal.WAIT, True),
        (ErrorCode.INVALID_UPDATE_VERSION, AfterRefusal.WAIT, True),
        (ErrorCode.INVALID_REQUEST, AfterRefusal.WAIT, True),
        (ErrorCode.NEW_LEADER_ELECTED, AfterRefusal.WAIT, True),
        (ErrorCode.UNKNOWN_TOPIC_ID, AfterRefusal.WAIT, True),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, AfterRefusal.WAIT, True),
        (ErrorCode.NOT_CONTROLLER, AfterRefusal.RETRY, True),
        (ErrorCode.STALE_BROKER_EPOCH, AfterRefusal.RETRY, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, AfterRefusal.RETRY, True),
    ],
)
def test_what_a_refusal_means(state: PartitionState, code: ErrorCode, decided: AfterRefusal, is_pending: bool) -> None:
    """Kafka's Partition.handleAlterPartitionError. What may have been changed stays pending until the image says so."""
    proposal = proposed(state)
    assert state.isr_refused(proposal, code) is decided
    assert (state.pending is proposal) == is_pending


def test_a_follower_that_has_not_caught_up_for_too_long_leaves() -> None:
    state = leading(ME, OTHER, THIRD)
    state.local_end_moved(Offset(10))
    fetched(state, OTHER, 10, leader_end=10, now_ms=LAG_MS)
    assert state.maybe_shrink(Offset(12), LAG_MS) is None, "both count as caught up when the epoch begins"
    proposal = state.maybe_shrink(Offset(12), LAG_MS + 1)
    assert proposal is not None
    assert (proposal.isr, proposal.added) == ((ME, OTHER), None)
    assert state.maximal_isr == (ME, OTHER, THIRD), "until it is committed"


def test_a_follower_at_the_leaders_end_stays_however_long_nothing_happens() -> None:
    state = leading(ME, OTHER)
    fetched(state, OTHER, 10, leader_end=10)
    assert state.maybe_shrink(Offset(10), 100 * LAG_MS) is None


def test_a_follower_that_always_reads_what_was_the_end_at_its_last_fetch_keeps_up() -> None:
    """Under a steady load no fetch reaches the leader's end. Kafka's lastFetchLeaderLogEndOffset."""
    state = leading(ME, OTHER)
    for turn in range(1, 5):
        fetched(state, OTHER, 10 * turn, leader_end=10 * turn + 10, now_ms=turn * LAG_MS)
    assert state.maybe_shrink(Offset(60), 4 * LAG_MS) is None
    slow = leading(ME, OTHER)
    for turn in range(1, 5):
        fetched(slow, OTHER, 5 * turn, leader_end=10 * turn + 10, now_ms=turn * LAG_MS)
    assert slow.maybe_shrink(Offset(60), 4 * LAG_MS) is not None


def test_a_shrink_commits_what_waited_for_those_who_left() -> None:
    state = leading(ME, OTHER)
    state.local_end_moved(Offset(9))
    proposal = state.maybe_shrink(Offset(9), LAG_MS + 1)
    assert proposal is not None
    assert state.high_watermark == 0
    decide(state, leadership(partition_epoch=1), end=9, now_ms=LAG_MS + 1)
    assert state.high_watermark == 9


def test_a_follower_proposes_nothing(cluster: Cluster) -> None:
    state = PartitionState(ME, cluster)
    decide(state, leadership(leader=OTHER, in_sync=(OTHER, ME)))
    assert state.maybe_shrink(Offset(0), 10 * LAG_MS) is None
    assert state.maybe_expand(THIRD) is None
