"""What lag tools see of a stream: all that is done, and nothing that is not."""

from pathlib import Path

from pyspark.sql import SparkSession

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.offsets import CommittedOffset, commit_offsets, fetch_committed
from tests.peers.kaspar import KasparProcess
from tests.peers.raw_client import RawClient
from tests.peers.raw_offsets import NOWHERE, RawOffsets
from tests.spark.streams import TIMEOUT_SECONDS, Stream
from tests.spark.topics import Topics, wait_until


def committed(broker: KasparProcess, group: str, topic: str) -> int | None:
    """What the group has committed of partition 0."""
    with RawClient(broker.port) as client:
        offset = RawOffsets(client, group).fetch(topic, 0)[0].offset
    return None if offset == NOWHERE else offset


def test_offsets_are_committed_when_a_micro_batch_is_done_and_none_follows(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"one", b"two"])
    stream = Stream(
        spark,
        broker.bootstrap,
        tmp_path,
        subscribe=orders,
        kafka__group__id="at-rest",
        commitGroupOffsets=True,
        commitGroupMetadata="run 7",
    )
    stream.may_go_on.clear()
    with stream:
        stream.wait_for([b"one", b"two"])
        assert committed(broker, "at-rest", orders) == 0, "it is read, and not done"
        stream.may_go_on.set()
        wait_until(lambda: committed(broker, "at-rest", orders) == 2, "no lag is left")
    with Client(broker.bootstrap) as client:
        assert fetch_committed(client, "at-rest") == {TopicPartition(orders, 0): CommittedOffset(2, "run 7")}


def test_a_batch_that_fails_is_committed_when_it_was_run_again(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"one"])
    options = {"subscribe": orders, "startingOffsets": "earliest", "kafka.group.id": "failing"}
    options["commitGroupOffsets"] = "true"
    frame = spark.readStream.format("kaspar").options(**{"kafka.bootstrap.servers": broker.bootstrap, **options}).load()
    failing = frame.selectExpr("raise_error('no') as value").writeStream.format("noop")
    query = failing.option("checkpointLocation", str(tmp_path)).start()
    wait_until(lambda: query.exception() is not None, "the batch has failed", seconds=TIMEOUT_SECONDS)
    assert committed(broker, "failing", orders) == 0

    again = Stream(
        spark, broker.bootstrap, tmp_path, subscribe=orders, kafka__group__id="failing", commitGroupOffsets=True
    )
    again.may_go_on.clear()
    with again:
        again.wait_for([b"one"])
        assert committed(broker, "failing", orders) == 0, "it is read, and not done"
        again.may_go_on.set()
        wait_until(lambda: committed(broker, "failing", orders) == 1, "no lag is left")


def test_available_now_leaves_no_lag_and_its_group_is_the_same_in_every_run(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    groups = set()
    for run in range(2):
        topics.produce(orders, [b"one", b"two"])
        with Stream(
            spark, broker.bootstrap, tmp_path, available_now=True, subscribe=orders, groupIdPrefix="nightly"
        ) as stream:
            assert len(stream.values) == 2
        (group,) = (each for each in topics.groups() if each.startswith("nightly"))
        groups.add(group)
        assert committed(broker, group, orders) == 2 * (run + 1)
    assert len(groups) == 1


def test_query_that_only_reads_leaves_the_offsets_of_its_group_as_they_are(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    """A group id is often given for the sake of ACLs, and may be that of an application which commits itself."""
    orders = topics.create()
    topics.produce(orders, [b"one", b"two", b"three"])
    with Client(broker.bootstrap) as client:
        assert not commit_offsets(client, "billing", {TopicPartition(orders, 0): 1})
    with Stream(
        spark, broker.bootstrap, tmp_path, available_now=True, subscribe=orders, kafka__group__id="billing"
    ) as stream:
        assert stream.values == [b"one", b"two", b"three"]
    assert committed(broker, "billing", orders) == 1


def test_nothing_is_committed_if_the_query_says_so(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"one"])
    stream = Stream(
        spark,
        broker.bootstrap,
        tmp_path,
        available_now=True,
        subscribe=orders,
        groupIdPrefix="silent",
        commitGroupOffsets=False,
    )
    with stream:
        assert stream.values == [b"one"]
    assert not [group for group in topics.groups() if group.startswith("silent")]
