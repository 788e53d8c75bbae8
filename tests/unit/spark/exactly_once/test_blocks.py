"""Blocks of writes in foreachBatch: of a batch there is one under each name, and what it covers is published once or is
missed aloud, in whatever order blocks, threads, crashes and changes of the program come.
"""

import threading
from contextlib import suppress

import pytest

from kaspar.base.errors import KasparError
from kaspar.exactly_once.blocks import Blocks, Scope
from kaspar.exactly_once.errors import NameTaken, Superseded
from kaspar.exactly_once.leftovers import end_leftovers
from kaspar.exactly_once.names import named_job
from kaspar.exactly_once.ownership import claim, release
from tests.property.exactly_once_model import Cluster, Killed
from tests.unit.exactly_once.scenes import DriverProcess, is_killed, killed_at_every_step
from tests.unit.spark.exactly_once.programs import QUERY, TOPICS, Program


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def topics_of(cluster: Cluster, batch_id: int) -> list[str]:
    assert all(times == 1 for times in cluster.visible.values())
    return [TOPICS[number] for batch, number in sorted(cluster.visible) if batch == batch_id]


# --- more than one block ----------------------------------------------------------------------------------------------


def test_a_second_block_is_refused_in_every_run_that_repeats_the_batch(cluster: Cluster) -> None:
    for run in ("first", "second", "third"):
        program = Program(cluster, run)
        program.go(0, "large")
        with pytest.raises(KasparError, match="this block is not published: put all writes"):
            program.go(0, "totals")
        with pytest.raises(KasparError, match="put all writes of a batch into one"):
            program.go(1, "large")
    assert topics_of(cluster, 0) == ["large"]
    named = Program(cluster, "mended")
    named.go(0, "large")
    named.go(0, "totals", query="orders-totals")
    assert topics_of(cluster, 0) == ["large", "totals"]
    assert not cluster.open_ids()


def test_of_nested_blocks_nothing_is_published(cluster: Cluster) -> None:
    program = Program(cluster, "run")

    def nested() -> None:
        with program.block(0) as outer:
            program.write(outer, "large")
            with program.block(0) as inner:
                program.write(inner, "totals")

    with pytest.raises(KasparError, match="neither is published"):
        nested()
    assert not cluster.visible
    assert not cluster.open_ids()


@pytest.mark.parametrize("second_batch", [0, 1])
@pytest.mark.parametrize("stream", ["stream", None])
def test_a_block_that_another_thread_begins_meanwhile_keeps_the_first_from_being_published(
    cluster: Cluster, second_batch: int, stream: str | None
) -> None:
    """Also where that thread keeps the refusal to itself."""
    program = Program(cluster, "run", stream=stream)
    refusals: list[str] = []

    def second() -> None:
        try:
            program.go(second_batch, "totals")
        except KasparError as problem:
            refusals.append(str(problem))

    def first() -> None:
        with program.block(0) as batch:
            program.write(batch, "large")
            thread = threading.Thread(target=second)
            thread.start()
            thread.join()

    with pytest.raises(KasparError, match="neither is published"):
        first()
    assert len(refusals) == 1
    assert not cluster.visible
    assert not cluster.open_ids()


def test_a_block_without_writes_is_a_block(cluster: Cluster) -> None:
    program = Program(cluster, "run")
    program.go(0)
    with pytest.raises(KasparError, match="put all writes of a batch into one"):
        program.go(0, "large")
    assert not cluster.visible


def test_blocks_with_names_of_their_own_do_not_touch_each_other(cluster: Cluster) -> None:
    program = Program(cluster, "run")
    with suppress(RuntimeError), program.block(0, "outer") as outer:
        program.write(outer, "large")
        program.go(0, "totals", query="inner")
        raise RuntimeError("after the inner block")
    assert topics_of(cluster, 0) == ["totals"]
    again = Program(cluster, "again")
    with again.block(0, "outer") as outer:
        again.write(outer, "large")
        again.go(0, "totals", query="inner")
    assert topics_of(cluster, 0) == ["large", "totals"]


def test_the_same_batch_may_go_to_another_cluster() -> None:
    blocks = Blocks()
    for cluster in ("here", "there"):
        blocks.begin(Scope(cluster, QUERY, "run"), 0)
    with pytest.raises(KasparError, match="neither is published"):
        blocks.begin(Scope("there", QUERY, "run"), 0)
    blocks.check(Scope("here", QUERY, "run"))


def test_a_block_that_raised_may_be_tried_again_in_the_same_run(cluster: Cluster) -> None:
    program = Program(cluster, "run")
    with suppress(RuntimeError), program.block(0) as batch:
        program.write(batch, "large")
        raise RuntimeError("between its writes")
    assert not cluster.open_ids()
    program.go(0, "large", "totals")
    assert topics_of(cluster, 0) == ["large", "totals"]


def test_what_a_failed_write_left_open_is_aborted_also_if_nothing_else_was_written(cluster: Cluster) -> None:
    program = Program(cluster, "run")
    with program.block(0) as batch, suppress(RuntimeError), batch.writes.one(batch.name, "new"):
        program.write(batch, "large")
        batch.written.clear()  # its other tasks have failed, so Spark gives no message
        raise RuntimeError("another task of it")
    assert not cluster.visible
    assert not cluster.open_ids()


def test_a_commit_that_failed_at_any_step_may_be_tried_again_in_the_same_run() -> None:
    def scene(step: int) -> bool:
        cluster = Cluster()
        program = Program(cluster, "run")
        failed = False
        try:
            with program.block(0) as batch:
                program.write(batch, "large")
                program.fuse.left = step
        except Killed:
            failed = True
        program.fuse.left = -1
        program.process = DriverProcess(cluster.process("reconnected", program.fuse))
        while cluster.on_their_way:
            cluster.store(cluster.on_their_way.pop())
        if failed:
            program.go(0, "large")
        program.go(1, "large")
        assert cluster.visible == {(0, 0): 1, (1, 0): 1}
        assert not cluster.open_ids()
        return failed

    killed_at_every_step(scene)


def test_a_run_that_was_superseded_does_not_take_the_query_back(cluster: Cluster) -> None:
    """Also where its program tries again."""
    old, new = Program(cluster, "old"), Program(cluster, "new")
    with suppress(Superseded), old.block(0) as batch:
        old.write(batch, "large")
        new.go(0, "large")
    with pytest.raises(Superseded):
        old.go(0, "large")
    new.go(1, "large")
    assert cluster.visible == {(0, 0): 1, (1, 0): 1}


def test_what_is_written_after_the_end_of_a_block_is_refused(cluster: Cluster) -> None:
    program = Program(cluster, "run")
    with program.block(0) as batch:
        program.write(batch, "large")
    with pytest.raises(KasparError, match="block of batch 0 of query orders has ended"):
        program.write(batch, "totals")
    with suppress(RuntimeError), program.block(1) as batch:
        raise RuntimeError
    with pytest.raises(KasparError, match="has ended"):
        program.write(batch, "totals")


def test_a_block_that_ends_before_its_writes_publishes_nothing(cluster: Cluster) -> None:
    program = Program(cluster, "run")

    def leave_a_write_behind() -> None:
        """In a thread that nobody waits for."""
        with program.block(0) as batch:
            program.write(batch, "large")
            slow = batch.writes.one(batch.name, "totals")
            slow.__enter__()
            slow_writes.append(slow)

    slow_writes: list[object] = []

    with pytest.raises(KasparError, match="ended while writes were still in progress"):
        leave_a_write_behind()
    assert not cluster.visible
    assert not cluster.open_ids()


# --- a program that was changed ---------------------------------------------------------------------------------------


def test_a_topic_that_is_added_between_a_crash_and_the_restart_is_published_or_missed_aloud() -> None:
    """The program dies at any step of its commit; the next one writes to one more topic."""

    def scene(step: int) -> bool:
        cluster = Cluster()
        first = Program(cluster, "first")

        def publish() -> None:
            with first.block(0) as batch:
                first.write(batch, "large")
                first.fuse.left = step

        try:
            publish()
            killed = False
        except Killed:
            killed = True
        while cluster.on_their_way:
            cluster.store(cluster.on_their_way.pop())
        changed = Program(cluster, "changed")
        is_decided = cluster.process("reader").participants.log.read_to_end(QUERY).is_decided(0)
        if is_decided:
            with pytest.raises(KasparError, match="writes to large; now the program also writes to new"):
                changed.go(0, "large", "new")
            assert topics_of(cluster, 0) == ["large"]
            end_leftovers(cluster.process("command").participants, QUERY, accept_loss=True)
            Program(cluster, "accepted").go(0, "large", "new")
            assert topics_of(cluster, 0) == ["large"]
        else:
            changed.go(0, "large", "new")
            assert topics_of(cluster, 0) == ["large", "new"]
        Program(cluster, "next").go(1, "large", "new")
        assert topics_of(cluster, 1) == ["large", "new"]
        assert not cluster.open_ids()
        return killed

    killed_at_every_step(scene)


def test_a_topic_that_is_left_out_between_runs_misses_nothing(cluster: Cluster) -> None:
    Program(cluster, "first").go(0, "large", "totals")
    Program(cluster, "second").go(0, "totals")
    assert topics_of(cluster, 0) == ["large", "totals"]


def test_outside_a_stream_another_topic_under_the_same_batch_is_refused(cluster: Cluster) -> None:
    Program(cluster, "by hand", stream=None).go(7, "large")
    Program(cluster, "by hand again", stream=None).go(7, "large")
    with pytest.raises(KasparError, match="writes to large; now the program also writes to totals"):
        Program(cluster, "by hand, other rows", stream=None).go(7, "totals")
    assert topics_of(cluster, 7) == ["large"]


# --- a name and its stream --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", ["with a new checkpoint", None])
def test_a_name_is_refused_to_another_stream(cluster: Cluster, stream: str | None) -> None:
    old = Program(cluster, "old")
    old.go(0, "large")
    with pytest.raises(NameTaken, match=r"belongs to the streaming query stream .* --query orders --end --release"):
        Program(cluster, "new", stream=stream).go(0, "large")
    old.go(1, "large")
    assert topics_of(cluster, 1) == ["large"], "the other was not disturbed"


def test_a_stream_is_refused_the_name_of_a_program_that_counts_by_itself(cluster: Cluster) -> None:
    Program(cluster, "job", stream=None).go(0, "large")
    with pytest.raises(NameTaken, match="belongs to a program that numbers its batches itself"):
        Program(cluster, "stream").go(0, "large")


def test_blocks_and_jobs_are_not_counted_under_one_name(cluster: Cluster) -> None:
    block = Program(cluster, "block", stream=None)
    block.go(3, "large", query="nightly/orders")
    end_leftovers(cluster.process("command").participants, "nightly/orders")
    cluster.compact(cluster.next_offset)
    participants = cluster.process("worker").participants
    with pytest.raises(NameTaken, match=r"counts the batches of kaspar.spark.batch"):
        claim(participants, named_job("nightly", "orders", 1, "job"))
    claim(participants, named_job("nightly", "counts", 1, "job"))
    with pytest.raises(NameTaken, match="counts the versions of a job"):
        block.go(4, "large", query="nightly/counts")


def test_a_name_stays_with_its_stream_through_a_takeover(cluster: Cluster) -> None:
    Program(cluster, "old").go(0, "large")
    end_leftovers(cluster.process("command").participants, QUERY)
    cluster.compact(cluster.next_offset)
    with pytest.raises(NameTaken):
        Program(cluster, "new", stream="another").go(0, "large")
    Program(cluster, "next").go(1, "large")


def test_a_log_that_does_not_know_its_stream_takes_the_next_one_for_it(cluster: Cluster) -> None:
    """As one of before streams were kept in it."""
    cluster.store([(b'["owner","orders",1,"run","w"]', b'{"format":1}')])
    cluster.store([(b'["decision","orders",4,1,"run","w"]', b'{"format":1,"complete":true,"transactions":[]}')])
    program = Program(cluster, "new")
    program.go(4, "large")
    assert not cluster.visible, "the last batch is repeated"
    program.go(5, "large")
    assert topics_of(cluster, 5) == ["large"]
    with pytest.raises(NameTaken):
        Program(cluster, "other", stream="another").go(6, "large")


def test_a_name_released_at_any_step_restarts_its_count_or_keeps_it() -> None:
    def scene(step: int) -> bool:
        cluster = Cluster()
        old = Program(cluster, "old")
        old.go(0, "large")
        command = cluster.process("command")
        killed = is_killed(command, step, lambda: release(command.participants, QUERY))
        while cluster.on_their_way:
            cluster.store(cluster.on_their_way.pop())
        if killed:
            with suppress(NameTaken):
                Program(cluster, "too early", stream="another").go(0, "totals")
            if not topics_of(cluster, 0)[1:]:
                release(cluster.process("again").participants, QUERY)
        cluster.compact(cluster.next_offset)
        new = Program(cluster, "new", stream="another")
        new.go(0, "totals")
        new.go(1, "totals")
        assert topics_of(cluster, 0) == ["large", "totals"]
        assert topics_of(cluster, 1) == ["totals"]
        with pytest.raises((NameTaken, Superseded)):
            old.go(1, "large")
        assert not cluster.open_ids()
        return killed

    killed_at_every_step(scene)


def test_a_stream_whose_name_was_released_does_not_get_it_back(cluster: Cluster) -> None:
    """As where a supervisor starts the old query again: it would repeat its last batch."""
    Program(cluster, "old").go(0, "large")
    release(cluster.process("command").participants, QUERY)
    end_leftovers(cluster.process("another command").participants, QUERY)
    with pytest.raises(NameTaken, match="was released for others"):
        Program(cluster, "started again").go(0, "large")
    Program(cluster, "new", stream="another").go(0, "totals")
    assert topics_of(cluster, 0) == ["large", "totals"]


def test_a_completion_that_arrives_after_its_name_was_released_does_not_count(cluster: Cluster) -> None:
    Program(cluster, "old").go(0, "large")
    last = cluster.process("reader").participants.log.read_to_end(QUERY).last
    assert last is not None
    release(cluster.process("command").participants, QUERY)
    cluster.store([last.completion()])
    Program(cluster, "new", stream="another").go(0, "totals")
    cluster.compact(cluster.next_offset)
    Program(cluster, "newer", stream="another").go(1, "totals")
    assert topics_of(cluster, 0) == ["large", "totals"]
