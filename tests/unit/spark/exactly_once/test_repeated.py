"""Repeated batches and jobs, as their drivers see it: what was published is not written again, and that is
logged; what cannot be a repetition is refused.
"""

import pytest

from kaspar.base.errors import KasparError
from kaspar.exactly_once.attempt import Attempt
from kaspar.exactly_once.blocks import Blocks
from kaspar.exactly_once.errors import Superseded
from kaspar.exactly_once.names import BatchName
from kaspar.spark.exactly_once import driver, foreach_batch
from kaspar.spark.exactly_once.guarantee import ExactlyOnce
from kaspar.spark.exactly_once.task import TaskWritten
from kaspar.spark.writing.options import WriteOptions
from tests.property.exactly_once_model import Cluster
from tests.unit.exactly_once.scenes import DriverProcess, decided

SERVERS = {"kafka.bootstrap.servers": "h:9092"}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """One whose driver is this process."""
    made = Cluster()
    process = DriverProcess(made.process("driver"))
    for module in (driver, foreach_batch):
        monkeypatch.setattr(module, "this_process", lambda _: process)
    monkeypatch.setattr(foreach_batch, "_blocks", Blocks())
    return made


def write(cluster: Cluster, batch: BatchName, row: tuple[int, int]) -> TaskWritten:
    """A task with one row."""
    worker = cluster.process(f"worker of {batch.claim}")
    attempt = Attempt.begin(worker.participants, worker.slots, batch)
    if attempt is None:
        return TaskWritten(batch, 1, None)
    worker.write(attempt.transactional_id, attempt.producer, row)
    attempt.prepare()
    return TaskWritten(batch, 1, decided(attempt, 0))


def logged_repetitions(capsys: pytest.CaptureFixture[str]) -> list[str]:
    first, *lines = capsys.readouterr().err.splitlines()
    assert "publishes exactly once, with prepared transactions" in first
    return [line for line in lines if "publishes exactly once" not in line]


def job(cluster: Cluster, topic: str | None, version: int, row: tuple[int, int]) -> None:
    given = {**SERVERS, "guarantee": "exactly-once", "txnAppId": "nightly", "txnVersion": str(version)}
    options = WriteOptions.of(given if topic is None else {**given, "topic": topic})
    guarantee = ExactlyOnce.of(options, streaming=False)
    assert guarantee.batch is not None
    guarantee.publish([write(cluster, guarantee.batch, row)])


def test_a_version_is_written_once_into_each_topic(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    for number, topic in enumerate(["orders", "counts", None]):
        job(cluster, topic, 7, (7, number))
    assert set(cluster.visible) == {(7, 0), (7, 1), (7, 2)}
    assert logged_repetitions(capsys) == []


def test_a_version_that_was_published_is_not_written_again_and_the_driver_says_so(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for version, row in ((7, (7, 0)), (7, (7, 1)), (6, (6, 0))):
        job(cluster, "orders", version, row)
    assert set(cluster.visible) == {(7, 0)}
    assert logged_repetitions(capsys) == [
        f"kaspar: batch {version} of query nightly/orders was already published: its 1 rows are not written again."
        for version in (7, 6)
    ]


def run_batch(cluster: Cluster, batch_id: int, row: tuple[int, int]) -> None:
    with foreach_batch.batch(batch_id, query="orders", options=SERVERS) as batch:
        if not batch.is_published:
            batch.written.append(write(cluster, batch.name, row))


def in_run(monkeypatch: pytest.MonkeyPatch, run_id: str | None) -> None:
    monkeypatch.setattr(foreach_batch, "_running_query", lambda: (run_id and "id of the query", run_id))


def test_a_stream_repeats_its_last_batch_and_stops_where_its_count_restarts(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_run(monkeypatch, "first run")
    for batch_id in range(3):
        run_batch(cluster, batch_id, (batch_id, 0))
    in_run(monkeypatch, "second run")
    run_batch(cluster, 2, (2, 1))
    assert "batch 2 of query orders was already published" in capsys.readouterr().err
    in_run(monkeypatch, "run with a new checkpoint")
    with pytest.raises(Superseded, match="batch 0 of query orders is over"):
        run_batch(cluster, 0, (0, 1))
    assert set(cluster.visible) == {(0, 0), (1, 0), (2, 0)}


def test_outside_a_stream_a_batch_is_written_once_however_often_it_is_repeated(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_run(monkeypatch, None)
    for batch_id, row in ((5, (5, 0)), (5, (5, 1)), (4, (4, 0)), (6, (6, 0))):
        run_batch(cluster, batch_id, row)
    assert set(cluster.visible) == {(5, 0), (6, 0)}
    assert len(logged_repetitions(capsys)) == 2


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [(None, "called inside foreachBatch, or with query="), ("1", "Under Spark Connect foreachBatch does not know its")],
)
def test_a_batch_without_a_name_says_what_is_missing(
    mode: str | None, sentence: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_run(monkeypatch, None)
    if mode is not None:
        monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", mode)
    with pytest.raises(KasparError, match=sentence), foreach_batch.batch(0, options=SERVERS):
        pass
