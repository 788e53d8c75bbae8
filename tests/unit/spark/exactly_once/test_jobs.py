"""Jobs without a name: nobody runs them again, so others finish what their drivers had decided when they died."""

import pytest

from kaspar.exactly_once.decision_log import partition_of
from kaspar.exactly_once.errors import DecidedNotCommitted
from kaspar.exactly_once.leftovers import end_leftovers
from kaspar.exactly_once.names import BatchName, unnamed_job
from kaspar.spark.exactly_once import driver
from kaspar.spark.exactly_once.task import TaskWritten
from kaspar.spark.writing.options import WriteOptions
from tests.property.exactly_once_model import Cluster
from tests.unit.exactly_once.scenes import TASKS, DriverProcess, Run, is_killed, killed_at_every_step

OPTIONS = WriteOptions.of({"kafka.bootstrap.servers": "h:9092", "guarantee": "exactly-once"})


class Job(Run):
    """One that has written all of its rows."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(cluster, name)
        self.written = self.write(0)

    def batch(self, batch_id: int) -> BatchName:
        return unnamed_job(self.name)

    def publish(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(driver, "this_process", lambda _: DriverProcess(self.committer))
            messages = [TaskWritten(self.batch(0), 1, each) for each in self.written]
            driver.publish_messages(OPTIONS, self.batch(0), messages)


def test_what_a_job_had_decided_when_its_driver_died_is_finished_by_the_next_job() -> None:
    def scene(step: int) -> bool:
        cluster = Cluster()
        job = Job(cluster, "dead")
        is_dead = is_killed(job.committer, step, job.publish)
        cluster.on_their_way.clear()
        query = job.batch(0).query
        is_decided = (
            bool(cluster.visible) or cluster.process("reader").participants.log.read_to_end(query).pending is not None
        )
        Job(cluster, "next").publish()
        times = 2 if is_decided else 1
        assert [cluster.visible[0, task] for task in range(TASKS)] == [times] * TASKS
        assert bool(cluster.open_ids()) == (not is_decided)
        end_leftovers(cluster.process("command").participants, query)
        assert not cluster.open_ids(), "what was not decided is ended by hand"
        assert [cluster.visible[0, task] for task in range(TASKS)] == [times] * TASKS
        return is_dead

    killed_at_every_step(scene)


def test_a_driver_that_is_alive_after_all_finds_its_job_done() -> None:
    cluster = Cluster()
    slow, other = Job(cluster, "slow"), Job(cluster, "other")
    coordinator = slow.committer.participants.coordinator
    end = coordinator.end

    def other_is_faster(endings):  # type: ignore[no-untyped-def]
        coordinator.end = end  # type: ignore[method-assign]
        other.publish()
        return end(endings)

    coordinator.end = other_is_faster  # type: ignore[method-assign, assignment]
    slow.publish()
    assert [cluster.visible[0, task] for task in range(TASKS)] == [2] * TASKS
    assert not cluster.open_ids()
    assert cluster.process("reader").participants.log.read_to_end(slow.batch(0).query).owners == []


def test_a_job_that_another_completes_at_any_step_of_its_commit_is_not_reported_as_failed() -> None:
    """A caller that sees a failure repeats the job, and gets its rows twice."""

    def scene(step: int) -> bool:
        cluster = Cluster()
        slow, other = Job(cluster, "slow"), Job(cluster, "other")
        act = slow.committer.fuse.step
        left = step

        def let_the_other_in() -> None:
            nonlocal left
            left -= 1
            if left == -1:
                other.publish()
            act()

        slow.committer.fuse.step = let_the_other_in  # type: ignore[method-assign]
        slow.publish()
        has_come = left < 0
        if not has_come:
            other.publish()
        assert [cluster.visible[0, task] for task in range(TASKS)] == [2] * TASKS
        assert not cluster.open_ids()
        cluster.compact(cluster.next_offset)
        assert not cluster.log, "both are forgotten"
        return has_come

    killed_at_every_step(scene)


def test_a_job_that_is_published_does_not_fail_if_the_log_is_away_after_that() -> None:
    cluster = Cluster()
    job = Job(cluster, "job")
    log = job.committer.participants.log
    append = log.append

    def no_tombstones(query, records):  # type: ignore[no-untyped-def]
        if all(value is None for _, value in records):
            raise OSError("away")
        return append(query, records)

    log.append = no_tombstones  # type: ignore[method-assign]
    job.publish()
    assert [cluster.visible[0, task] for task in range(TASKS)] == [1] * TASKS


def test_a_job_that_fails_after_its_decision_says_that_it_must_not_be_repeated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster()
    job = Job(cluster, "job")
    coordinator = job.committer.participants.coordinator

    def away(endings):  # type: ignore[no-untyped-def]
        raise OSError("away")

    coordinator.end = away  # type: ignore[method-assign, assignment]
    with pytest.raises(DecidedNotCommitted, match="do not repeat the job"):
        job.publish()
    del coordinator.end
    monkeypatch.setattr(driver, "this_process", lambda _: DriverProcess(job.committer))
    driver.abort_messages(OPTIONS, job.batch(0), [TaskWritten(job.batch(0), 1, each) for each in job.written])
    assert "is published all the same" in capsys.readouterr().err
    assert [cluster.visible[0, task] for task in range(TASKS)] == [1] * TASKS


def test_jobs_see_each_other_in_the_log() -> None:
    assert len({partition_of(unnamed_job(claim).query) for claim in ("one", "two", "three", "four")}) == 1
