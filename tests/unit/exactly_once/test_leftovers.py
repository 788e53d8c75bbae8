"""What a query left behind is carried out by the run of any other, or ended by hand; it is not guessed at when the log
is lost.
"""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.exactly_once.errors import DecidedButAborted, LogLost, NameTaken
from kaspar.exactly_once.leftovers import end_leftovers, finish_decided, finish_for_others
from kaspar.exactly_once.names import TransactionName
from kaspar.exactly_once.ownership import release
from tests.property.exactly_once_model import Cluster
from tests.unit.exactly_once.scenes import (
    QUERY,
    TASKS,
    Run,
    dead_after_its_decision,
    is_killed,
    killed_at_every_step,
    published,
)
from tests.unit.spark.exactly_once.programs import QUERY as QUERY_OF_BLOCKS
from tests.unit.spark.exactly_once.programs import Program


def dead_by_half() -> Cluster:
    """A query has decided batch 1, and its driver died."""
    run = Run(Cluster(), "dead")
    run.go(0)
    return dead_after_its_decision(run, 1, run.write(1)).cluster


def lose_the_log(cluster: Cluster) -> None:
    cluster.log.clear()


# --- carried out by others --------------------------------------------------------------------------------------------


def test_what_a_query_decided_is_committed_by_the_run_of_any_other_killed_at_any_step() -> None:
    def scene(step: int) -> bool:
        cluster = dead_by_half()
        doomed = cluster.process("doomed")
        killed = is_killed(doomed, step, lambda: finish_for_others(doomed.participants))
        finish_for_others(cluster.process("another").participants)
        assert cluster.visible == published(0, 1)
        assert not cluster.open_ids()
        cluster.compact(cluster.next_offset)
        state = cluster.process("reader").participants.log.read_to_end(QUERY)
        assert state.owner == "dead", "it is not taken over"
        assert state.pending is None
        Run(cluster, "next").go(1, 2)
        assert cluster.visible == published(0, 1, 2)
        return killed

    killed_at_every_step(scene)


def test_a_driver_that_is_committing_while_another_run_does_so_too_goes_on() -> None:
    def scene(step: int) -> bool:
        cluster = Cluster()
        run = Run(cluster, "run")
        run.go(0)
        written = run.write(1)
        act = run.committer.fuse.step
        left = step

        def let_others_in() -> None:
            nonlocal left
            if left == 0:
                finish_for_others(cluster.process("other").participants)
            left -= 1
            act()

        run.committer.fuse.step = let_others_in  # type: ignore[method-assign]
        run.commit(1, written)
        run.committer.fuse.step = act  # type: ignore[method-assign]
        run.go(2, 3)
        assert cluster.visible == published(0, 1, 2, 3)
        assert not cluster.open_ids()
        return left < 0

    killed_at_every_step(scene)


def test_a_run_that_is_slow_to_finish_anothers_decision_does_no_harm_however_far_that_is_by_then() -> None:
    def scene(step: int) -> bool:
        cluster = dead_by_half()
        slow = cluster.process("slow")
        act = slow.fuse.step
        left = step

        def fall_asleep() -> None:
            nonlocal left
            if left == 0:
                Run(cluster, "next").go(1, 2, 3)
                cluster.compact(cluster.next_offset)
            left -= 1
            act()

        slow.fuse.step = fall_asleep  # type: ignore[method-assign]
        finish_for_others(slow.participants)
        Run(cluster, "last").go(4, 5)
        assert cluster.visible == published(0, 1, *((2, 3) if left < 0 else ()), 4, 5)
        assert not cluster.open_ids()
        return left < 0

    killed_at_every_step(scene)


def test_a_decision_that_cannot_be_carried_out_is_reported_and_affects_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = dead_by_half()
    pending = cluster.process("reader").participants.log.read_to_end(QUERY).pending
    assert pending is not None
    cluster.end(cluster.transactions[pending.transactions[0].transactional_id], False)
    finish_for_others(cluster.process("other").participants)
    assert "batch 1 of query query is decided, but could not be committed" in caplog.text
    (problem,) = finish_decided(cluster.process("command").participants).values()
    assert problem is not None
    assert "tasks 0 wrote to orders is missing" in problem


def test_a_transaction_whose_id_was_forgotten_is_not_said_to_be_aborted() -> None:
    """Everything was committed, and the completion was not written."""
    cluster = dead_by_half()
    process = cluster.process("next")
    coordinator = process.participants.coordinator
    pending = process.participants.log.read_to_end(QUERY).pending
    assert pending is not None
    forgotten = pending.transactions[0].transactional_id

    def end(endings, *, is_urgent=True):  # type: ignore[no-untyped-def]
        return [
            ErrorCode.INVALID_PRODUCER_ID_MAPPING if each.transactional_id == forgotten else ErrorCode.NONE
            for each in endings
        ]

    coordinator.end = end  # type: ignore[method-assign]
    coordinator.describe = lambda ids: {}  # type: ignore[method-assign, assignment]
    with pytest.raises(DecidedButAborted, match="is unknown") as reported:
        end_leftovers(process.participants, QUERY)
    assert "aborted" not in str(reported.value)
    assert reported.value.transactions == 1


# --- a log that is lost -----------------------------------------------------------------------------------------------


def test_a_query_that_the_log_does_not_know_any_more_writes_nothing_until_someone_has_looked() -> None:
    cluster = Cluster()
    run = Run(cluster, "run")
    run.go(0)
    left = run.write(1)
    lose_the_log(cluster)
    for name in ("next", "the one after"):
        with pytest.raises(LogLost, match=f"--query {QUERY} --end"):
            Run(cluster, name).write(1)
    assert cluster.log == []
    ended = end_leftovers(cluster.process("command").participants, QUERY)
    assert (ended.committed, ended.aborted, ended.still_open) == (0, len(left), frozenset())
    assert not cluster.open_ids(), "and they are"
    Run(cluster, "last").go(1, 2)
    assert cluster.visible == published(0, 1, 2)


def test_the_command_names_a_later_generation_than_those_that_the_log_has_lost() -> None:
    cluster = Cluster()
    for number in range(5):
        Run(cluster, f"run{number}").write(0)
    assert {TransactionName.of(name).generation for name in cluster.open_ids()} == {5}  # type: ignore[union-attr]
    lose_the_log(cluster)
    assert end_leftovers(cluster.process("command").participants, QUERY).aborted == TASKS
    assert cluster.process("reader").participants.log.read_to_end(QUERY).generation == 6


def test_tasks_of_a_new_run_do_not_take_each_other_for_what_a_lost_log_has_left() -> None:
    def scene(step: int) -> bool:
        cluster = Cluster()
        run = Run(cluster, "run")
        slow = cluster.process("slow")
        act = slow.fuse.step
        left = step

        def wait_for_another() -> None:
            nonlocal left
            if left == 0:
                run.begin(0, 1)
            left -= 1
            act()

        slow.fuse.step = wait_for_another  # type: ignore[method-assign]
        assert run.begin(0, 0, slow) is not None
        return left < 0

    killed_at_every_step(scene)


def test_a_transaction_that_a_run_reopens_while_it_is_ended_is_reported() -> None:
    cluster = Cluster()
    run = Run(cluster, "run")
    run.go(0)
    (first, *_) = run.write(1)
    command = cluster.process("command").participants
    fence = command.coordinator.fence

    def fence_and_let_it_write_on(ids) -> None:  # type: ignore[no-untyped-def]
        fence(ids)
        cluster.transactions[first.transactional_id].state = "Ongoing"

    command.coordinator.fence = fence_and_let_it_write_on  # type: ignore[method-assign, assignment]
    ended = end_leftovers(command, QUERY)
    assert ended.still_open == {first.transactional_id}
    assert ended.aborted == TASKS - 1


def test_a_stream_that_takes_a_released_name_while_it_is_ended_by_hand_keeps_it() -> None:
    """It claims when the command has begun to look, and its transactions are among those that the command finds."""
    cluster = Cluster()
    Program(cluster, "old", stream="old").go(0, "large")
    release(cluster.process("command").participants, QUERY_OF_BLOCKS)
    command = cluster.process("command").participants
    coordinator = command.coordinator
    known = coordinator.known_transactions

    def another_comes(query: str) -> list[str]:
        Program(cluster, "new", stream="new").go(0, "totals")
        return known(query)

    coordinator.known_transactions = another_comes  # type: ignore[method-assign]
    end_leftovers(command, QUERY_OF_BLOCKS)
    with pytest.raises(NameTaken):
        Program(cluster, "third", stream="third").go(0, "new")
    Program(cluster, "again", stream="new").go(1, "totals")
