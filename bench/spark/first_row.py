"""A program that reads one row and prints the time: `python -m bench.spark.first_row FORMAT BOOTSTRAP TOPIC`."""

import json
import sys
import time

from pyspark import SparkContext

import kaspar.spark
from tests.peers.spark_connector import connector_settings


def main() -> None:
    source, bootstrap, topic = sys.argv[1:]
    session = kaspar.spark.session("first row", "local[2]", {"spark.driver.memory": "1g", **connector_settings()})
    ends = f'{{"{topic}": {{"0": 1}}}}'
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "endingOffsets": ends}
    rows = session.read.format(source).options(**options).load().collect()
    assert len(rows) == 1
    print(json.dumps({"read_at": time.monotonic()}))
    # Wait for the JVM, so that it counts as part of this program, and not as a disturbance.
    session.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main()
