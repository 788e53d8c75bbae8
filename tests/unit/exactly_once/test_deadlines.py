"""A batch is decided only while its transactions are open, and those with a timeout have a third of it left."""

import logging

import pytest

from kaspar.exactly_once.announcing import announce
from kaspar.exactly_once.deadlines import latest_age_ms
from kaspar.exactly_once.decisions import DecidedTransaction
from kaspar.exactly_once.errors import NotPublished
from tests.property.exactly_once_model import TIMEOUT_MS, Cluster
from tests.unit.exactly_once.scenes import QUERY, DriverProcess, Run, decided, published


def written_so_long_ago(age_ms: int, *, prepares: bool) -> tuple[Run, list[DecidedTransaction]]:
    run = Run(Cluster(prepares=prepares), "run")
    written = run.write(0)
    run.cluster.now_ms = age_ms
    return run, written


def test_a_batch_is_decided_while_a_third_of_its_timeout_is_left() -> None:
    run, written = written_so_long_ago(latest_age_ms(TIMEOUT_MS), prepares=False)
    run.commit(0, written)
    assert run.cluster.visible == published(0)


def test_a_batch_is_not_decided_later_and_says_what_helps() -> None:
    run, written = written_so_long_ago(latest_age_ms(TIMEOUT_MS) + 1, prepares=False)
    with pytest.raises(NotPublished, match="open for two thirds of their timeout of 60000 ms") as refused:
        run.commit(0, written)
    for remedy in ("kafka.transaction.timeout.ms", "transaction.max.timeout.ms", "more cores", "a Kaspar broker"):
        assert remedy in str(refused.value)
    assert run.committer.participants.log.read_to_end(QUERY).last is None
    assert not run.cluster.visible
    Run(run.cluster, "next").go(0)
    assert run.cluster.visible == published(0)
    assert not run.cluster.open_ids()


def test_one_task_that_began_early_is_enough() -> None:
    cluster = Cluster(prepares=False)
    run = Run(cluster, "run")
    early = run.begin(0, 7)
    stray = run.begin(0, 8)
    assert early is not None
    assert stray is not None
    cluster.now_ms = TIMEOUT_MS - 1
    written = run.write(0)
    with pytest.raises(NotPublished, match="its tasks 7 have been open"):
        run.commit(0, [*written, decided(early, 7)])
    run.commit(0, written)
    assert cluster.visible == published(0), "those that are not chosen do not matter"


def test_a_prepared_transaction_waits_for_any_time() -> None:
    run, written = written_so_long_ago(100 * TIMEOUT_MS, prepares=True)
    run.commit(0, written)
    assert run.cluster.visible == published(0)


@pytest.mark.parametrize("prepares", [True, False])
def test_what_was_aborted_by_hand_before_the_decision_is_not_decided(prepares: bool) -> None:
    run, written = written_so_long_ago(0, prepares=prepares)
    run.cluster.end(run.cluster.transactions[written[1].transactional_id], False)
    with pytest.raises(NotPublished, match=r"tasks 1 of batch 0 .* aborted before it was decided"):
        run.commit(0, written)
    Run(run.cluster, "next").go(0)
    assert run.cluster.visible == published(0)


def test_workers_that_could_not_prepare_yet_are_held_to_their_timeouts() -> None:
    """What a worker process found out about its brokers may be older than what the driver's has."""
    run, written = written_so_long_ago(TIMEOUT_MS - 1, prepares=False)
    run.cluster.prepares = True
    with pytest.raises(NotPublished, match="two thirds"):
        run.commit(0, written)


@pytest.mark.parametrize(
    ("prepares", "way"), [(True, "with prepared transactions"), (False, "a timeout of 60000 ms: these brokers do not")]
)
def test_each_run_says_once_which_way_it_goes(
    prepares: bool, way: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(prepares=prepares)
    with caplog.at_level(logging.INFO):
        for name, batch_ids in (("first", (0, 1)), ("second", (2, 3))):
            run = Run(cluster, name)
            process = DriverProcess(run.committer)
            for batch_id in batch_ids:
                announce(process, run.batch(batch_id))  # type: ignore[arg-type]
                run.go(batch_id)
            announce(DriverProcess(cluster.process("another")), run.batch(4))  # type: ignore[arg-type]
            lines = capsys.readouterr().err.splitlines()
            assert len(lines) == 1
            assert way in lines[0]
    assert len(caplog.messages) == 2
