"""Exactly once in real Spark: streams, foreachBatch and jobs, repeated as Spark repeats them after a crash."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import WriterCommitMessage

import kaspar.spark
from kaspar.base.ids import TopicPartition
from kaspar.cli.main import main
from kaspar.client import Client
from kaspar.client.transactions import list_transactions
from kaspar.exactly_once.decision_log import DecisionLog
from tests.peers.kaspar import KasparProcess
from tests.spark.topics import Topics, wait_until

if TYPE_CHECKING:
    import pyarrow as pa

EXACTLY_ONCE = {"guarantee": "exactly-once"}


def servers(broker: KasparProcess) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap}


def run_stream(
    spark: SparkSession,
    broker: KasparProcess,
    checkpoint: Path,
    source: str,
    *,
    into: str | None = None,
    publish: Callable[[DataFrame, int], None] | None = None,
) -> None:
    """All that is there, a micro-batch for every five rows."""
    reader = spark.readStream.format("kaspar").options(**servers(broker), subscribe=source, maxOffsetsPerTrigger="5")
    rows = reader.option("startingOffsets", "earliest").load().select("key", "value")
    writer = rows.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    if publish is not None:
        query = writer.foreachBatch(publish).start()
    else:
        assert into is not None
        query = writer.format("kaspar").options(**servers(broker), topic=into, **EXACTLY_ONCE).start()
    try:
        wait_until(lambda: not query.isActive, "all that is there is written", seconds=60)
        if (failure := query.exception()) is not None:
            raise failure
    finally:
        query.stop()


def forget_the_last_commit(checkpoint: Path) -> None:
    """As if the driver had died after it published a batch, and before Spark wrote down that it is done."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    (checkpoint / "commits" / f".{last.name}.crc").unlink(missing_ok=True)


def wait_for(topics: Topics, topic: str, expected: list[bytes]) -> None:
    def has_them() -> bool:
        found = sorted(value or b"" for value in topics.values(topic))
        assert len(found) <= len(expected)
        return found == sorted(expected)

    wait_until(has_them, f"{topic} has {len(expected)} rows")


def open_transactions(broker: KasparProcess) -> list[str]:
    with Client(broker.bootstrap) as client:
        listed = list_transactions(client, prefix="kaspar-spark:", states=("Ongoing",))
        return [each.transactional_id for each in listed]


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def test_a_stream_publishes_every_row_once_also_when_its_last_batch_is_repeated(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(), topics.create(partitions=2)
    topics.produce(source, numbered(0, 12))
    run_stream(spark, broker, tmp_path, source, into=target)
    wait_for(topics, target, numbered(0, 12))
    forget_the_last_commit(tmp_path)
    topics.produce(source, numbered(12, 17))
    run_stream(spark, broker, tmp_path, source, into=target)
    wait_for(topics, target, numbered(0, 17))
    assert open_transactions(broker) == []


def test_a_stream_whose_checkpoint_was_set_back_stops_with_a_sentence(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(), topics.create()
    topics.produce(source, numbered(0, 10))
    run_stream(spark, broker, tmp_path, source, into=target)
    for folder in ("commits", "offsets"):
        for file in (tmp_path / folder).glob("*1*"):
            file.unlink()
    for file in (tmp_path / "commits").glob("*0*"):
        file.unlink()
    with pytest.raises(PySparkException, match="start the query with a new checkpoint"):
        run_stream(spark, broker, tmp_path, source, into=target)
    wait_for(topics, target, numbered(0, 10))


def test_all_writes_of_a_foreach_batch_are_published_together_and_once(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    source, plain, marked = topics.create(), topics.create(), topics.create()
    topics.produce(source, numbered(0, 7))
    failures = ["the first batch fails between its writes"]

    def publish(rows: DataFrame, batch_id: int) -> None:
        with kaspar.spark.batch(batch_id, options=servers(broker)) as batch:
            batch.write(rows, topic=plain)
            if failures:
                raise RuntimeError(failures.pop())
            batch.write(rows.selectExpr("concat('m', string(value)) as value"), topic=marked)

    with pytest.raises(PySparkException, match="between its writes"):
        run_stream(spark, broker, tmp_path, source, publish=publish)
    assert topics.values(plain) == []
    assert open_transactions(broker) == []
    run_stream(spark, broker, tmp_path, source, publish=publish)
    forget_the_last_commit(tmp_path)
    run_stream(spark, broker, tmp_path, source, publish=publish)
    wait_for(topics, plain, numbered(0, 7))
    wait_for(topics, marked, [b"m" + value for value in numbered(0, 7)])
    assert open_transactions(broker) == []


def test_a_program_in_the_tasks_of_a_batch_is_published_once_and_knows_where_its_records_end(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(), topics.create(partitions=2)
    topics.produce(source, numbered(0, 7))
    failing = tmp_path / "failing"
    failing.touch()
    results: list[list[bytes] | None] = []

    class ToBothPartitions:
        """Local, so that Spark's workers need not find this module."""

        def process(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            import pyarrow as pa

            for batch in batches:
                values = batch.column("value")
                for partition in (0, 1):
                    partitions = pa.array([partition] * len(values), pa.int32())
                    yield pa.record_batch({"topic": [target] * len(values), "value": values, "partition": partitions})

        def finished(self, message: WriterCommitMessage, end_offsets: Mapping[TopicPartition, int]) -> bytes:
            if failing.exists():
                raise OSError("the disk of the task is full")
            return repr([end for _, end in sorted(end_offsets.items())]).encode()

    def publish(rows: DataFrame, batch_id: int) -> None:
        with kaspar.spark.batch(batch_id, options=servers(broker)) as batch:
            results.append(batch.run(rows, ToBothPartitions()))

    with pytest.raises(PySparkException, match="the disk of the task is full") as caught:
        run_stream(spark, broker, tmp_path / "checkpoint", source, publish=publish)
    assert "kafka.bootstrap.servers" not in str(caught.value)
    assert topics.values(target) == []
    assert open_transactions(broker) == []
    failing.unlink()
    run_stream(spark, broker, tmp_path / "checkpoint", source, publish=publish)
    forget_the_last_commit(tmp_path / "checkpoint")
    run_stream(spark, broker, tmp_path / "checkpoint", source, publish=publish)
    wait_for(topics, target, 2 * numbered(0, 7))
    offsets = [each.offset for each in topics.read(target) if each.partition == 1]
    ends = [offsets[4] + 1, offsets[6] + 1]  # what failed and the markers of transactions have offsets, too
    assert results == [*([repr([end, end]).encode()] for end in ends), None]
    assert open_transactions(broker) == []


def test_a_second_block_of_a_batch_stops_the_query_however_often_it_is_started(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    source, first, second = topics.create(), topics.create(), topics.create()
    topics.produce(source, numbered(0, 3))

    def publish(rows: DataFrame, batch_id: int) -> None:
        kaspar.spark.write_batch(rows, batch_id=batch_id, topic=first, options=servers(broker))
        kaspar.spark.write_batch(rows, batch_id=batch_id, topic=second, options=servers(broker))

    def publish_under_two_names(rows: DataFrame, batch_id: int) -> None:
        kaspar.spark.write_batch(rows, batch_id=batch_id, topic=first, options=servers(broker))
        kaspar.spark.write_batch(rows, batch_id=batch_id, query=second, topic=second, options=servers(broker))

    for _ in range(2):
        with pytest.raises(PySparkException, match="put all writes of a batch into one"):
            run_stream(spark, broker, tmp_path, source, publish=publish)
    run_stream(spark, broker, tmp_path, source, publish=publish_under_two_names)
    for topic in (first, second):
        wait_for(topics, topic, numbered(0, 3))


def test_runs_of_a_program_with_its_own_job_groups_are_distinguished(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(), topics.create()
    topics.produce(source, numbered(0, 3))

    def publish(rows: DataFrame, batch_id: int, *, times: int = 1) -> None:
        spark.sparkContext.setJobGroup("nightly", "the same in every run")
        for _ in range(times):
            kaspar.spark.write_batch(rows, batch_id=batch_id, topic=target, options=servers(broker))

    run_stream(spark, broker, tmp_path, source, publish=publish)
    forget_the_last_commit(tmp_path)
    topics.produce(source, numbered(3, 5))
    run_stream(spark, broker, tmp_path, source, publish=publish)
    wait_for(topics, target, numbered(0, 5))
    topics.produce(source, numbered(5, 7))
    with pytest.raises(PySparkException, match="put all writes of a batch into one"):
        run_stream(spark, broker, tmp_path, source, publish=lambda rows, batch: publish(rows, batch, times=2))


def test_a_name_is_refused_to_a_new_checkpoint_until_it_is_released(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(), topics.create()
    topics.produce(source, numbered(0, 3))

    def publish(rows: DataFrame, batch_id: int) -> None:
        kaspar.spark.write_batch(rows, query=f"to {target}", batch_id=batch_id, topic=target, options=servers(broker))

    run_stream(spark, broker, tmp_path / "old", source, publish=publish)
    with pytest.raises(PySparkException, match="belongs to the streaming query"):
        run_stream(spark, broker, tmp_path / "new", source, publish=publish)
    wait_for(topics, target, numbered(0, 3))
    command = ["spark", "transactions", "--bootstrap-server", broker.bootstrap, "--query", f"to {target}", "--end"]
    assert main([*command, "--release"]) == 0
    run_stream(spark, broker, tmp_path / "new", source, publish=publish)
    wait_for(topics, target, numbered(0, 3) * 2)


def test_writers_with_one_name_and_version_in_a_batch_stop_the_query_however_often_it_is_started(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(), topics.create()
    topics.produce(source, numbered(0, 3))

    def publish(rows: DataFrame, batch_id: int, *names: str) -> None:
        for name in names:
            named = {"txnAppId": f"{name} {target}", "txnVersion": str(batch_id), "topic": target}
            rows.write.format("kaspar").options(**servers(broker), **EXACTLY_ONCE, **named).mode("append").save()

    for _ in range(2):
        with pytest.raises(PySparkException, match="give each write of a batch a txnAppId of its own"):
            run_stream(spark, broker, tmp_path, source, publish=lambda rows, batch: publish(rows, batch, "one", "one"))
    run_stream(spark, broker, tmp_path, source, publish=lambda rows, batch: publish(rows, batch, "one", "other"))
    wait_for(topics, target, numbered(0, 3) * 2)


def test_a_batch_that_is_repeated_by_hand_is_written_once(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    target = topics.create()
    rows = spark.range(3).selectExpr("string(id) as value")
    for _ in range(2):
        kaspar.spark.write_batch(rows, query="by hand", batch_id=1, topic=target, options=servers(broker))
    wait_for(topics, target, numbered(0, 3))


def test_a_plain_write_inside_foreach_batch_must_say_which_batch_it_is(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(), topics.create()
    topics.produce(source, numbered(0, 2))

    def publish(rows: DataFrame, batch_id: int) -> None:
        rows.write.format("kaspar").options(**servers(broker), topic=target, **EXACTLY_ONCE).mode("append").save()

    with pytest.raises(PySparkException, match=r"kaspar\.spark\.write_batch"):
        run_stream(spark, broker, tmp_path, source, publish=publish)
    assert topics.values(target) == []


def test_a_job_with_a_version_is_published_once_however_often_it_is_repeated(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    target = topics.create(partitions=2)

    def write(version: int) -> None:
        rows = spark.range(version * 10, version * 10 + 4, numPartitions=2).selectExpr("string(id) as value")
        named = {"txnAppId": "nightly job", "txnVersion": str(version), "topic": target}
        rows.write.format("kaspar").options(**servers(broker), **EXACTLY_ONCE, **named).mode("append").save()

    for version in (1, 1, 2, 1):
        write(version)
    wait_for(topics, target, [*numbered(10, 14), *numbered(20, 24)])


def test_a_job_without_a_name_is_published_whole_and_leaves_nothing_behind(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    target = topics.create(partitions=2)

    def write(divisor: str) -> None:
        rows = spark.range(4, numPartitions=2).selectExpr(f"string(id div {divisor}) as value")
        rows.write.format("kaspar").options(**servers(broker), topic=target, **EXACTLY_ONCE).mode("append").save()

    with pytest.raises(PySparkException):
        write("(id - 3)")
    assert topics.values(target) == []
    write("1")
    wait_for(topics, target, numbered(0, 4))
    # A task of the failed job may have begun after its driver gave up, and aborts what it wrote when it is done.
    wait_until(lambda: open_transactions(broker) == [], "no transaction is open")
    with Client(broker.bootstrap) as client:
        log = DecisionLog(client)
        jobs = [query for query in log.queries() if query.startswith("job-")]
        assert all(log.state(query).pending is None for query in jobs)
