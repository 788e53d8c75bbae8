"""What the examples wait with."""

from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from examples.spark.stage import Stage


class Query:
    """Takes only what a StreamingQuery takes: the JVM is given whole milliseconds, and refuses none."""

    def __init__(self) -> None:
        self.waits = 0

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802
        assert int(timeout * 1000) > 0, "Timeout has to be positive"
        self.waits += 1
        return False


@pytest.mark.parametrize("seconds", [1e-9, 0.0004, 0.003])
def test_wait_that_is_shorter_than_a_millisecond(seconds: float, capsys: pytest.CaptureFixture[str]) -> None:
    query = Query()
    stage = Stage(cast(SparkSession, None), "localhost:9092", Path())
    stage.watch(cast(StreamingQuery, query), lambda _: "goes on", seconds)
    assert capsys.readouterr().out.count("goes on") == query.waits
