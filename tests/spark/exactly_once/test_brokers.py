"""Crashes at every step of a commit on real brokers: ours with prepared transactions, ours without, and Apache Kafka.

A stock consumer with read_committed says what was published.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kaspar.cli.main import main
from kaspar.exactly_once.deadlines import latest_age_ms
from kaspar.exactly_once.decision_log import TOPIC
from kaspar.exactly_once.errors import DecidedButAborted, LogLost, NotPublished, Superseded
from tests.peers.kafka import ApacheKafka, kafka_jars
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess
from tests.property.exactly_once_model import Killed
from tests.spark.exactly_once.real_runs import TASKS, RealRun, rows_of
from tests.spark.topics import Topics, wait_until

QUICK_TIMEOUTS = {
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
TIMES_OUT = {**QUICK_TIMEOUTS, "transaction.two.phase.commit.enable": "false"}
MOST_STEPS = 30
SHORT_TIMEOUT_MS = 3_000  # two thirds of it are enough to write and decide a batch
_numbers = itertools.count()


@pytest.fixture(scope="module", params=["prepared", "timeouts", "kafka"])
def any_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    running: BrokerProcess
    if request.param == "kafka":
        unless_missing(kafka_jars)
        running = ApacheKafka(folder, overrides=QUICK_TIMEOUTS)
    else:
        running = KasparProcess(folder, overrides=QUICK_TIMEOUTS if request.param == "prepared" else TIMES_OUT)
    with running:
        yield running


@pytest.fixture
def preparing(tmp_path: Path) -> Iterator[KasparProcess]:
    with KasparProcess(tmp_path, overrides=QUICK_TIMEOUTS) as running:
        yield running


def new_runs(broker: BrokerProcess) -> tuple[Topics, str, Callable[..., RealRun]]:
    """A topic, and what starts a run of a query of its own that writes to it."""
    topics = Topics(broker.bootstrap)
    topic = topics.create(partitions=TASKS)
    query = f"query:{next(_numbers)}"
    return topics, topic, lambda name, **settings: RealRun(broker.bootstrap, query, name, topic, **settings)


def wait_for(topics: Topics, topic: str, expected: list[bytes]) -> None:
    """Markers are written after the response to EndTxn. Nothing else may be there, then or before."""

    def has_them() -> bool:
        found = sorted(value or b"" for value in topics.values(topic))
        assert set(found) <= set(expected)
        assert len(set(found)) == len(found)
        return found == expected

    wait_until(has_them, f"{len(expected)} rows are published")


def test_a_driver_killed_at_any_step_of_a_commit_is_followed_by_one_that_finishes(any_broker: BrokerProcess) -> None:
    topics, topic, _ = new_runs(any_broker)
    expected: list[bytes] = []
    for step in range(MOST_STEPS):
        query = f"killed at step {step}"
        first = RealRun(any_broker.bootstrap, query, "first", topic)
        first.go(0)
        killed = first.is_killed_in_commit(step, 1, first.write(1))
        second = RealRun(any_broker.bootstrap, query, "second", topic)
        second.go(1, 2)
        expected += rows_of(query, 0, 1, 2)
        assert not second.committer.participants.coordinator.open_transactions(query)
        second.close()
        if not killed:
            first.close()
            wait_for(topics, topic, sorted(expected))
            return
    raise AssertionError("a commit has no end")


def test_of_two_drivers_on_one_checkpoint_the_newer_one_publishes(any_broker: BrokerProcess) -> None:
    topics, topic, start = new_runs(any_broker)
    old, new = start("old"), start("new")
    old.go(0)
    written = old.write(1)
    new.go(1)
    with pytest.raises(Superseded, match="another run"):
        old.commit(1, written)
    with pytest.raises(Superseded, match="another run"):
        old.write(1)
    new.go(2)
    wait_for(topics, topic, rows_of(new.query, 0, 1, 2))
    for run in (old, new):
        run.close()


def test_a_decided_transaction_that_timed_out_stops_the_query(any_broker: BrokerProcess) -> None:
    topics, topic, start = new_runs(any_broker)
    first = start("first", timeout_ms=SHORT_TIMEOUT_MS)
    first.go(0)
    assert first.is_killed_in_commit(2, 1, first.write(1)), "after its decision"
    last = start("last", timeout_ms=SHORT_TIMEOUT_MS)
    coordinator = last.committer.coordinator
    if coordinator.prepares:
        topics.transact(topic, [b"later"], commit=True)  # whatever else happens, they wait
        last.go(1, 2)
        wait_for(topics, topic, sorted([*rows_of(last.query, 0, 1, 2), b"later"]))
    else:
        wait_until(lambda: not coordinator.open_transactions(last.query), "they have timed out")
        named = rf"batch 1 of query {last.query} .* tasks 0, 1 wrote to {topic}"
        with pytest.raises(DecidedButAborted, match=named):
            last.write(1)
        for batch_id in (1, 2):
            with pytest.raises(DecidedButAborted, match=named):
                last.commit(batch_id, [])
        wait_for(topics, topic, rows_of(last.query, 0))
        command = ["spark", "transactions", "--bootstrap-server", any_broker.bootstrap, "--query", last.query, "--end"]
        assert main(command) == 1
        assert main([*command, "--accept-loss"]) == 0
        another = start("another", timeout_ms=60_000)
        another.go(1, 2)
        wait_for(topics, topic, rows_of(last.query, 0, 2))
        another.close()
    last.close()


def test_a_batch_is_not_decided_when_its_timeout_is_nearly_over(any_broker: BrokerProcess) -> None:
    topics, topic, start = new_runs(any_broker)
    run = start("run", timeout_ms=SHORT_TIMEOUT_MS)
    written = run.write(0)
    coordinator = run.committer.coordinator
    age_ms = latest_age_ms(SHORT_TIMEOUT_MS)
    wait_until(lambda: len(coordinator.open_transactions(run.query, older_than_ms=age_ms)) == TASKS, "they are old")
    if coordinator.prepares:
        run.commit(0, written)
    else:
        with pytest.raises(NotPublished, match=r"tasks 0, 1 .* Raise kafka.transaction.timeout.ms"):
            run.commit(0, written)
        assert run.committer.participants.log.read_to_end(run.query).last is None
        assert topics.values(topic) == []
        again = start("again", timeout_ms=60_000)
        again.go(0)
        again.close()
    wait_for(topics, topic, rows_of(run.query, 0))
    run.close()


def test_what_was_decided_is_committed_by_anyone_and_the_run_goes_on(
    any_broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    topics, topic, start = new_runs(any_broker)
    run = start("run")
    run.go(0)
    run.committer.fuse.left = 2
    written = run.write(1)
    with pytest.raises(Killed):
        run.commit(1, written)
    run.committer.fuse.left = -1
    command = ["spark", "transactions", "--bootstrap-server", any_broker.bootstrap, "--finish"]
    assert main(command) == 0
    assert f"batch 1 of query {run.query}: committed" in capsys.readouterr().out
    wait_for(topics, topic, rows_of(run.query, 0, 1))
    assert main(command) == 0
    assert "All decided transactions are committed" in capsys.readouterr().out
    run.commit(1, written)
    run.go(2)
    wait_for(topics, topic, rows_of(run.query, 0, 1, 2))
    run.close()


def test_a_broker_killed_after_the_decision_commits_it_when_it_is_back(preparing: KasparProcess) -> None:
    topics, topic, start = new_runs(preparing)
    first = start("first")
    first.go(0)
    assert first.is_killed_in_commit(2, 1, first.write(1))
    preparing.kill()
    preparing.start()
    second = start("second")
    second.go(1, 2)
    wait_for(topics, topic, rows_of(second.query, 0, 1, 2))
    second.close()


def test_a_broker_killed_between_two_batches_is_written_to_again_over_the_same_run(preparing: KasparProcess) -> None:
    topics, topic, start = new_runs(preparing)
    run = start("run")
    run.go(0)
    preparing.kill()
    preparing.start()
    run.go(1)
    wait_for(topics, topic, rows_of(run.query, 0, 1))
    run.close()


def test_a_broker_without_prepare_commits_prepared_transactions_and_is_asked_again(
    preparing: KasparProcess,
) -> None:
    topics, topic, start = new_runs(preparing)
    run = start("run")
    run.go(0)
    written = run.write(1)
    preparing.kill()
    preparing.overrides.update(TIMES_OUT)
    preparing.start()
    run.commit(1, written)
    with pytest.raises(NotPublished, match="the brokers no longer allow it"):
        run.write(2)
    run.go(2)  # as Spark tries the task again, in the same worker
    wait_for(topics, topic, rows_of(run.query, 0, 1, 2))
    run.close()


def test_what_is_left_is_shown_and_ended_by_the_command(
    preparing: KasparProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    topics, topic, start = new_runs(preparing)
    run = start("run")
    command = ["spark", "transactions", "--bootstrap-server", preparing.bootstrap]
    assert main(command) == 0
    assert "No query has open transactions" in capsys.readouterr().out
    run.write(0)
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert f"query {run.query}, run run" in shown
    assert shown.count("not decided") == TASKS
    assert topic in shown
    assert main([*command, "--end"]) == 1
    assert "--end requires --query ID or --all" in capsys.readouterr().err
    for action in ([], ["--end"], ["--end", "--release"]):
        assert main([*command, "--query", "mistyped", *action]) == 1
        assert "there is no query mistyped; nothing was changed" in capsys.readouterr().err
    assert main([*command, "--end", "--all"]) == 0
    assert f"0 transactions committed, {TASKS} aborted" in capsys.readouterr().out
    assert main([*command, "--query", run.query]) == 0
    assert f"No open transactions of {run.query}." in capsys.readouterr().out
    topics.produce(topic, [b"after it"])
    wait_for(topics, topic, [b"after it"])
    with pytest.raises(Superseded, match="kaspar spark transactions"):
        run.go(0)
    run.close()


def test_a_decision_log_that_was_deleted_stops_its_queries_until_they_are_ended_by_hand(
    preparing: KasparProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    topics, topic, start = new_runs(preparing)
    run = start("run")
    run.go(0)
    written = run.write(1)
    topics.delete(TOPIC)
    other = RealRun(preparing.bootstrap, "another query", "other", topic)
    other.go(0)  # recreates it
    with pytest.raises(LogLost, match="recreated"):
        run.commit(1, written)
    with pytest.raises(LogLost, match="has published before, but is not in the decision log"):
        start("next").write(1)
    command = ["spark", "transactions", "--bootstrap-server", preparing.bootstrap, "--query", run.query, "--end"]
    assert main(command) == 0
    assert f"0 transactions committed, {TASKS} aborted" in capsys.readouterr().out
    assert not other.committer.coordinator.open_transactions(run.query)
    last = start("last")
    last.go(1)
    wait_for(topics, topic, sorted([*rows_of(run.query, 0, 1), *rows_of(other.query, 0)]))
    for each in (run, other, last):
        each.close()
