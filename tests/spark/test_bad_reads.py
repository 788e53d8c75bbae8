"""A query that cannot be run is refused in one sentence on the driver, without a traceback, and soon."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from tests.peers.kaspar import KasparProcess
from tests.spark.streams import Stream
from tests.spark.topics import Topics


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kafka.bootstrap.servers": "127.0.0.1:1"}, "No broker responds at 127.0.0.1:1 .*3 attempts"),
        ({"subscribe": "no-such-topic"}, "Topic 'no-such-topic' does not exist in the cluster at 127.0.0.1"),
        ({"subscribe": "no/topic"}, "'no/topic' is not a valid topic name"),
        ({"startingOffsets": "latest"}, "'startingOffsets' cannot be latest in a batch query"),
        ({"startingOffsets": '{"other":{"0":1}}'}, "must name every partition that is read"),
        ({"startingTimestamp": "99999999999999"}, "has timestamp 99999999999999 or a later one"),
        ({"failOnDataLoss": "perhaps"}, "'failOnDataLoss' must be true or false, not 'perhaps'"),
        ({"kafka.ssl.truststore.location": "/x"}, "has no effect with kafka.security.protocol = PLAINTEXT"),
        ({"value.format": "xml"}, "xml"),
    ],
)
def test_a_batch_is_refused_with_a_sentence(
    spark: SparkSession, broker: KasparProcess, topics: Topics, options: dict[str, str], sentence: str
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"one"])
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": orders, "fetchOffset.retryIntervalMs": "10"}
    with pytest.raises(AnalysisException, match=sentence) as refusal:
        spark.read.format("kaspar").options(**given | options).load().collect()
    assert "Traceback" not in str(refusal.value)


def test_a_schema_cannot_be_given(spark: SparkSession, broker: KasparProcess) -> None:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "orders"}
    frame = spark.read.format("kaspar").options(**given).schema(StructType([StructField("price", StringType())]))
    with pytest.raises(AnalysisException, match="The columns of a topic are fixed"):
        frame.load().collect()


def test_a_stream_cannot_start_where_nothing_is(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"one"])
    start = f'{{"{orders}":{{"0":99}}}}'
    with Stream(spark, broker.bootstrap, tmp_path, subscribe=orders, startingOffsets=start) as stream:
        failure = stream.failure()
    assert f"Offset 99 of {orders}-0 does not exist: its log goes from 0 to 1." in failure
    assert "Traceback" not in failure
