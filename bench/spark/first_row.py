"""A program that reads one row and ends: `python -m bench.spark.first_row FORMAT BOOTSTRAP TOPIC`."""

import sys

import kaspar.spark
from tests.peers.spark_connector import connector_settings


def main() -> None:
    source, bootstrap, topic = sys.argv[1:]
    session = kaspar.spark.session("first row", "local[2]", {"spark.driver.memory": "1g", **connector_settings()})
    ends = f'{{"{topic}": {{"0": 1}}}}'
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "endingOffsets": ends}
    rows = session.read.format(source).options(**options).load().collect()
    assert len(rows) == 1


if __name__ == "__main__":
    main()
