"""The table of docs/spark/exactly-once.md: what a crash after each step leads to. Scenes are played with the kill at
every single step, so each stands for all the rows between its first step and its last.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.transactions import Ending
from kaspar.exactly_once.attempt import Attempt
from kaspar.exactly_once.decisions import OWNERS_KEPT, DecidedTransaction, Owner, Standing
from kaspar.exactly_once.errors import DecidedButAborted, NotPublished, Superseded
from kaspar.exactly_once.leftovers import end_leftovers
from kaspar.exactly_once.ownership import claim, release, take_over
from kaspar.exactly_once.publishing import abort_batch
from tests.property.exactly_once_model import Cluster
from tests.unit.exactly_once.scenes import (
    QUERY,
    TASKS,
    Run,
    dead_after_its_decision,
    decided,
    is_killed,
    killed_at_every_step,
    published,
)


def test_batches_are_published_once_with_few_transactional_ids() -> None:
    cluster = Cluster()
    Run(cluster, "only").go(*range(10))
    assert cluster.visible == published(*range(10))
    assert len(cluster.transactions) == TASKS
    assert not cluster.open_ids()


def test_a_task_that_is_killed_at_any_step_publishes_nothing_and_its_next_attempt_all() -> None:
    def scene(step: int) -> bool:
        cluster = Cluster()
        run = Run(cluster, "run")
        run.go(0)
        doomed = cluster.process("doomed")

        def attempt() -> None:
            begun = run.begin(1, 0, doomed)
            assert begun is not None
            begun.prepare()

        killed = is_killed(doomed, step, attempt)
        assert cluster.visible == published(0)
        run.go(1)
        assert cluster.visible == published(0, 1)
        assert not cluster.open_ids(), "what it left is cleared away with its batch"
        return killed

    killed_at_every_step(scene)


@pytest.mark.parametrize("lands", [True, False], ids=["its append lands", "its append is lost"])
def test_a_driver_that_is_killed_at_any_step_of_a_commit_is_followed_by_one_that_finishes(lands: bool) -> None:
    def scene(step: int) -> bool:
        cluster = Cluster()
        first = Run(cluster, "first")
        first.go(0)
        written = first.write(1)
        killed = is_killed(first.committer, step, lambda: first.commit(1, written))
        while cluster.on_their_way:
            records = cluster.on_their_way.pop()
            if lands:
                cluster.store(records)
        assert cluster.visible.keys() <= published(0, 1).keys()
        cluster.compact(cluster.next_offset)
        second = Run(cluster, "second")
        second.go(1, 2)
        assert cluster.visible == published(0, 1, 2)
        assert not cluster.open_ids()
        return killed

    killed_at_every_step(scene)


def test_a_run_that_takes_over_and_is_killed_at_any_step_is_followed_by_one_that_does_the_rest() -> None:
    def scene(step: int) -> bool:
        first = Run(Cluster(), "first")
        first.go(0)
        cluster = dead_after_its_decision(first, 1, first.write(1)).cluster
        second = Run(cluster, "second")
        killed = is_killed(second.worker, step, lambda: second.begin(1, 0))
        Run(cluster, "third").go(1, 2)
        assert cluster.visible == published(0, 1, 2)
        assert not cluster.open_ids()
        return killed

    killed_at_every_step(scene)


def test_a_worker_that_is_killed_while_it_takes_over_is_followed_by_another_of_the_same_run() -> None:
    def scene(step: int) -> bool:
        first = Run(Cluster(), "first")
        first.go(0)
        cluster = dead_after_its_decision(first, 1, first.write(1)).cluster
        second = Run(cluster, "second")
        doomed = cluster.process("doomed")
        killed = is_killed(doomed, step, lambda: second.begin(1, 0, doomed))
        second.go(1)
        assert cluster.visible == published(0, 1), "Spark takes the batch for done now"
        second.go(2)
        assert cluster.visible == published(0, 1, 2)
        assert not cluster.open_ids()
        return killed

    killed_at_every_step(scene)


def test_a_run_that_takes_over_leaves_alone_what_its_other_tasks_write_meanwhile() -> None:
    cluster = Cluster()
    Run(cluster, "first").begin(0, 0)
    second = Run(cluster, "second")
    other_worker = cluster.process("other")
    find = second.worker.participants.coordinator.open_transactions

    def find_late(query: str) -> list[str]:
        second.begin(0, 1, other_worker)
        return find(query)

    second.worker.participants.coordinator.open_transactions = find_late  # type: ignore[method-assign, assignment]
    second.begin(0, 0)
    assert len(cluster.open_ids()) == 2
    assert all(":2:" in name for name in cluster.open_ids())


def test_a_superseded_process_leaves_alone_what_others_have_decided() -> None:
    run = Run(Cluster(), "decides")
    cluster = dead_after_its_decision(run, 0, run.write(0)).cluster
    second, third = Run(cluster, "second"), Run(cluster, "third")
    for each in (second, third):
        log = each.worker.participants.log
        log.append(
            QUERY, [Owner(QUERY, log.read_to_end(QUERY).generation + 1, each.name, "killed after its claim").record()]
        )
    with pytest.raises(Superseded):
        second.commit(0, [])
    assert len(cluster.open_ids()) == TASKS
    Run(cluster, "fourth").go(0)
    assert cluster.visible == published(0)


@pytest.mark.parametrize("number", range(4))
def test_whatever_a_new_run_does_while_the_old_one_commits_is_not_touched_by_it(number: int) -> None:
    """The new run begins before the `number`-th question that the old driver asks in its commit."""
    cluster = Cluster()
    old, new = Run(cluster, "old"), Run(cluster, "new")
    old.go(0)
    written = old.write(1)
    is_begun: list[list[DecidedTransaction]] = []
    asked = count()
    log, coordinator = old.committer.participants.log, old.committer.participants.coordinator

    def meanwhile(ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked_later(*arguments: Any) -> Any:
            if next(asked) == number:
                is_begun.append(new.write(1) or new.write(2))
            return ask(*arguments)

        return asked_later

    log.append = meanwhile(log.append)  # type: ignore[method-assign]
    coordinator.end = meanwhile(coordinator.end)  # type: ignore[method-assign]
    coordinator.open_transactions = meanwhile(coordinator.open_transactions)  # type: ignore[method-assign]
    with suppress(Superseded):
        old.commit(1, written)
    (begun,) = is_begun
    assert len(begun) == TASKS
    batch_id = 1 if (1, 0) not in cluster.visible else 2
    new.commit(batch_id, begun)
    assert cluster.visible == published(*range(batch_id + 1))


def test_a_commit_that_is_repeated_changes_nothing() -> None:
    cluster = Cluster()
    run = Run(cluster, "run")
    written = run.write(0)
    run.commit(0, written)
    run.commit(0, written)
    Run(cluster, "next").commit(0, [])
    assert cluster.visible == published(0)


def test_what_a_dead_run_decided_is_committed_and_what_it_did_not_is_aborted_as_soon_as_the_next_run_begins() -> None:
    first = Run(Cluster(), "first")
    written = first.write(0)
    first.begin(0, 0, first.cluster.process("zombie"))
    cluster = dead_after_its_decision(first, 0, written).cluster
    assert len(cluster.open_ids()) == TASKS + 1
    assert not cluster.visible
    Run(cluster, "second").begin(0, 0)
    assert cluster.visible == published(0)
    assert not cluster.open_ids()


@pytest.mark.parametrize("give_up_step", [-1, 0, 1, 2, 3, 4, 5, 6, 8, 10])
def test_a_commit_that_fails_and_is_aborted_by_spark_is_published_once_by_the_next_run(give_up_step: int) -> None:
    """Spark aborts a batch whose commit failed, though its decision may be in the log, or still on its way there."""

    def scene(step: int) -> bool:
        cluster = Cluster()
        run = Run(cluster, "run")
        run.go(0)
        written = run.write(1)
        killed = is_killed(run.committer, step, lambda: run.commit(1, written))
        aborter = cluster.process("aborter")
        is_killed(aborter, give_up_step, lambda: abort_batch(aborter.participants, run.batch(1)))
        while cluster.on_their_way:
            cluster.store(cluster.on_their_way.pop())
        Run(cluster, "next").go(1, 2)
        assert cluster.visible == published(0, 1, 2)
        assert not cluster.open_ids()
        return killed

    killed_at_every_step(scene)


def test_of_two_drivers_on_one_checkpoint_the_newer_one_publishes_and_the_older_one_stops() -> None:
    cluster = Cluster()
    old, new = Run(cluster, "old"), Run(cluster, "new")
    old.go(0)
    written = old.write(1)
    new.go(1)
    with pytest.raises(Superseded, match="another run"):
        old.commit(1, written)
    with pytest.raises(Superseded, match="another run"):
        old.go(2)
    new.go(2)
    assert cluster.visible == published(0, 1, 2)
    assert not cluster.open_ids()


def test_a_batch_that_the_older_of_two_drivers_has_decided_is_not_published_by_the_newer_one() -> None:
    cluster = Cluster()
    old, new = Run(cluster, "old"), Run(cluster, "new")
    written = old.write(0)
    old.commit(0, written)
    assert new.write(0) == []
    new.commit(0, [])
    new.go(1)
    assert cluster.visible == published(0, 1)


def test_an_old_driver_whose_decision_arrives_after_the_new_one_has_claimed_has_decided_nothing() -> None:
    cluster = Cluster()
    old, new = Run(cluster, "old"), Run(cluster, "new")
    written = old.write(0)
    assert is_killed(old.committer, 2, lambda: old.commit(0, written)), "at the append of its decision"
    assert len(cluster.on_their_way) == 1
    new_written = new.write(0)
    cluster.store(cluster.on_their_way.pop())
    new.commit(0, new_written)
    assert cluster.visible == published(0)
    assert not cluster.open_ids()


def test_an_attempt_that_comes_too_late_aborts_what_it_wrote() -> None:
    cluster = Cluster()
    run = Run(cluster, "run")
    late = run.begin(0, 0, cluster.process("late"))
    assert late is not None
    transaction = cluster.transactions[late.transactional_id]
    run.go(0)
    assert transaction.state == "Empty", "it was fenced and aborted with its batch"
    later = run.begin(1, 0, cluster.process("later"))
    assert later is not None
    other = Run(cluster, "other")
    other.go(1)
    with pytest.raises((Superseded, NotPublished, Refused)):
        later.prepare()
    assert not cluster.open_ids()


def test_a_late_attempt_of_the_same_run_that_nobody_fenced_aborts_itself() -> None:
    cluster = Cluster()
    run = Run(cluster, "run")
    written = run.write(0)
    late = Attempt.begin(run.worker.participants, run.worker.slots, run.batch(0))
    assert late is not None
    run.commit(0, written)
    run.worker.write(late.transactional_id, late.producer, (0, 0))
    with pytest.raises(NotPublished, match="finished too late"):
        late.prepare()
    assert cluster.visible == published(0)
    assert not cluster.open_ids()


def test_a_losing_attempt_is_aborted_with_its_batch() -> None:
    cluster = Cluster()
    run = Run(cluster, "run")
    loser = run.begin(0, 0, cluster.process("speculative"))
    assert loser is not None
    loser.prepare()
    run.go(0)
    assert cluster.visible == published(0)
    assert not cluster.open_ids()


def test_a_run_that_was_never_heard_of_does_not_put_out_one_that_is_ahead_of_it() -> None:
    cluster = Cluster()
    ahead, behind = Run(cluster, "ahead"), Run(cluster, "behind")
    ahead.go(0, 1)
    assert behind.begin(0, 0) is None
    ahead.go(2)
    assert cluster.visible == published(0, 1, 2)


def test_of_two_that_claim_at_once_the_first_in_the_log_is_in_force() -> None:
    cluster = Cluster()
    one, other = Run(cluster, "one"), Run(cluster, "other")
    seen = one.worker.participants.log.read_to_end(QUERY)
    claim(other.worker.participants, other.batch(0))
    assert take_over(one.worker.participants, QUERY, "one", seen) is None
    assert one.worker.participants.log.read_to_end(QUERY).standing("other") is Standing.OWNER


def forgotten(run: Run) -> None:
    """So many others claim the query after the run that the log does not know it any more."""
    for number in range(OWNERS_KEPT + 1):
        other = run.cluster.process(f"other{number}").participants
        take_over(other, QUERY, f"other{number}", other.log.read_to_end(QUERY))


def test_what_was_decided_stays_decided_however_many_runs_die_before_it_is_carried_out() -> None:
    run = Run(Cluster(), "run")
    run.go(0)
    cluster = dead_after_its_decision(run, 1, run.write(1)).cluster
    for number in range(3 * OWNERS_KEPT):
        dead = Run(cluster, f"dead{number}")
        assert is_killed(dead.worker, 3, partial(dead.begin, 1, 0)), "it owns the query, and that is all"
        cluster.compact(cluster.next_offset)
    Run(cluster, "last").go(1, 2)
    assert cluster.visible == published(0, 1, 2)
    assert not cluster.open_ids()
    Run(cluster, "next").go(3)
    cluster.compact(cluster.next_offset)
    assert len(cluster.log) <= OWNERS_KEPT + 2, "then its owner is forgotten as any other"


def test_a_claim_that_lands_twice_does_not_make_void_what_was_decided_between() -> None:
    """A process that gets no response to its append repeats it, and the first may still be in flight."""

    def scene(step: int) -> bool:
        cluster = Cluster()
        run = Run(cluster, "run")
        assert is_killed(run.worker, 4, lambda: run.begin(0, 0)), "at the append of its claim"
        late = cluster.on_their_way.pop()
        written = run.write(0)
        killed = is_killed(run.committer, step, lambda: run.commit(0, written))
        cluster.store(late)
        cluster.compact(cluster.next_offset)
        Run(cluster, "next").go(0, 1)
        assert cluster.visible == published(0, 1)
        return killed

    killed_at_every_step(scene)


def test_writes_that_a_decision_does_not_name_are_never_taken_for_published() -> None:
    cluster = Cluster()
    run = Run(cluster, "run")
    first, second = run.write(1), run.write(1)
    of_before = run.write(0)
    run.commit(1, first)
    for batch_id, written in ((1, second), (0, of_before)):
        with pytest.raises(NotPublished, match="published without what was written now"):
            run.commit(batch_id, written)
    assert cluster.visible == published(1)


def test_a_driver_that_was_away_until_the_log_forgot_its_run_decides_nothing() -> None:
    cluster = Cluster()
    zombie = Run(cluster, "zombie")
    zombie.go(0)
    written = zombie.write(1)
    forgotten(zombie)
    zombie.committer = cluster.process("its commit in a new process")
    assert zombie.committer.participants.log.read_to_end(QUERY).standing("zombie") is Standing.NEW
    live = Run(cluster, "live")
    live_written = live.write(1)
    with pytest.raises(Superseded):
        zombie.commit(1, written)
    live.commit(1, live_written)
    assert cluster.visible == published(0, 1)
    assert not cluster.open_ids()


def test_a_run_that_was_forgotten_between_its_tasks_publishes_nothing_of_the_batch() -> None:
    cluster = Cluster()
    run = Run(cluster, "run")
    before = run.write(0)[:1]
    forgotten(run)
    run.worker = cluster.process("a task in a new process")
    after = run.write(0)[1:]
    with pytest.raises(NotPublished, match="what tasks 0 wrote was aborted"):
        run.commit(0, before + after)
    assert not cluster.visible
    Run(cluster, "next").go(0)
    assert cluster.visible == published(0)
    assert not cluster.open_ids()


def test_a_batch_that_is_complete_does_not_fail_because_nothing_can_be_cleared_away() -> None:
    cluster = Cluster()
    run = Run(cluster, "run")
    stray = run.begin(0, 0, cluster.process("speculative"))
    assert stray is not None
    coordinator = run.committer.participants.coordinator
    find = coordinator.open_transactions

    def broker_is_away(query: str) -> list[str]:
        coordinator.open_transactions = find  # type: ignore[method-assign]
        raise ConnectionRefusedError("broker 2 is away")

    coordinator.open_transactions = broker_is_away  # type: ignore[method-assign, assignment]
    run.go(0)
    assert cluster.visible == published(0)
    assert cluster.open_ids() == [stray.transactional_id]
    run.go(1)
    assert not cluster.open_ids(), "the next batch does it"


def test_a_decision_that_its_own_run_completes_meanwhile_is_not_taken_for_lost() -> None:
    """And goes on to its next batch, with the same transactional ids, before the newer run has ended them."""
    cluster = Cluster()
    old, new = Run(cluster, "old"), Run(cluster, "new")
    written = old.write(0)
    slow, ahead = old.committer.participants.coordinator, new.worker.participants.coordinator
    end_slowly, end = slow.end, ahead.end

    def new_run_begins(endings: Sequence[Ending]) -> list[ErrorCode]:
        slow.end = end_slowly  # type: ignore[method-assign]
        assert new.begin(0, 0) is None, "the batch is published"
        return [ErrorCode.NONE] * len(endings)

    def old_run_is_faster(endings: Sequence[Ending]) -> list[ErrorCode]:
        ahead.end = end  # type: ignore[method-assign]
        end_slowly(endings)
        log = old.committer.participants.log
        log.append(QUERY, log.state(QUERY).completion())
        old.begin(1, 0)
        return end(endings)

    slow.end, ahead.end = new_run_begins, old_run_is_faster  # type: ignore[method-assign, assignment]
    old.commit(0, written)
    assert cluster.visible == published(0)
    new.go(1)
    assert cluster.visible == published(0, 1)


# --- ended by hand ----------------------------------------------------------------------------------------------------


def test_the_command_commits_what_was_decided_and_aborts_the_rest() -> None:
    run = Run(Cluster(), "run")
    written = run.write(0)
    run.begin(0, 0, run.cluster.process("stray"))
    run = dead_after_its_decision(run, 0, written)
    cluster = run.cluster
    ended = end_leftovers(cluster.process("command").participants, QUERY)
    assert (ended.committed, ended.aborted) == (TASKS, 1)
    assert cluster.visible == published(0)
    assert not cluster.open_ids()
    with pytest.raises(Superseded):
        run.go(1)


def test_a_name_is_not_released_over_what_another_run_decides_meanwhile() -> None:
    """It takes the query over while the command commits what was pending, and dies after a decision of its own."""
    first = Run(Cluster(), "first")
    cluster = dead_after_its_decision(first, 0, first.write(0)).cluster
    command, other = cluster.process("command").participants, Run(cluster, "other")
    end = command.coordinator.end

    def end_late(endings: Sequence[Ending]) -> list[ErrorCode]:
        codes = end(endings)
        other.go(0)
        written = other.write(1)
        assert is_killed(other.committer, 6, lambda: other.commit(1, written))
        assert cluster.process("reader").participants.log.read_to_end(QUERY).pending is not None
        return codes

    command.coordinator.end = end_late  # type: ignore[method-assign, assignment]
    with pytest.raises(Superseded, match="release the name again"):
        release(command, QUERY)
    Run(cluster, "next").go(1, 2)
    assert cluster.visible == published(0, 1, 2)


# --- brokers that cannot prepare transactions -------------------------------------------------------------------------


def timed_out_after_its_decision() -> Cluster:
    run = Run(Cluster(prepares=False), "run")
    run.go(0)
    written = run.write(1)
    cluster = dead_after_its_decision(run, 1, written).cluster
    for each in written:
        cluster.time_out(each.transactional_id)
    return cluster


def test_a_decided_transaction_that_timed_out_stops_the_query_for_good_and_is_named() -> None:
    cluster = timed_out_after_its_decision()
    for name in ("second", "third"):
        with pytest.raises(DecidedButAborted, match=r"batch 1 .* tasks 0, 1, 2 wrote to orders"):
            Run(cluster, name).go(1)
    assert cluster.visible == published(0)


def test_what_is_missing_can_be_accepted_by_hand() -> None:
    cluster = timed_out_after_its_decision()
    command = cluster.process("command").participants
    with pytest.raises(DecidedButAborted, match=f"--query {QUERY} --end --accept-loss"):
        end_leftovers(command, QUERY)
    ended = end_leftovers(command, QUERY, accept_loss=True)
    assert ended.loss is not None
    Run(cluster, "next").go(1, 2)
    assert cluster.visible == published(0, 2)


def test_a_transaction_that_times_out_before_the_decision_keeps_the_whole_batch_from_being_published() -> None:
    cluster = Cluster(prepares=False)
    run = Run(cluster, "run")
    written = run.write(0)
    cluster.time_out(written[0].transactional_id)
    with pytest.raises(NotPublished, match="tasks 0 of batch 0"):
        run.commit(0, written)
    assert not cluster.visible
    Run(cluster, "next").go(0)
    assert cluster.visible == published(0)
    assert not cluster.open_ids()


def test_a_driver_that_is_killed_while_it_commits_is_followed_by_one_that_finishes_in_time() -> None:
    def scene(step: int) -> bool:
        cluster = Cluster(prepares=False)
        first = Run(cluster, "first")
        written = first.write(0)
        killed = is_killed(first.committer, step, lambda: first.commit(0, written))
        Run(cluster, "second").go(0, 1)
        assert cluster.visible == published(0, 1)
        return killed

    killed_at_every_step(scene)


def test_messages_of_one_batch_name_what_each_task_wrote() -> None:
    cluster = Cluster()
    run = Run(cluster, "run")
    attempt = run.begin(0, 7)
    assert attempt is not None
    before = attempt.producer
    attempt.prepare()
    message = decided(attempt, 7)
    assert message.producer.producer_epoch == before.producer_epoch + 1, "it is ended by another pair than wrote it"
    assert message.task == 7
