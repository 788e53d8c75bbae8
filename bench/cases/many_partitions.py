"""A topic of 4,000 partitions: creating and describing it, writing to it, and starting with it."""

import time
from collections.abc import Mapping

from bench import meters, programs
from bench.bench import Bench
from bench.cases.case import Case
from bench.cases.lifecycle import READY_TIMEOUT_SECONDS, seconds_until_ready
from bench.rows import Better, Row
from bench.sides import Side
from bench.topics import Topics
from tests.peers.process import BrokerProcess

_TOPIC = "many"
_METADATA_REQUESTS = 100
_RECORDS = 400_000
_RECORD_BYTES = 1000


class ManyPartitions(Case):
    PARTITIONS = 4000

    def __init__(self) -> None:
        section = f"{self.PARTITIONS:,} partitions"
        rows = (
            Row("partitions_create", "create them, until each acknowledged a record", section, "s", Better.LESS),
            Row("partitions_metadata", "metadata of all of them, median", section, "ms", Better.LESS),
            Row("partitions_produce", "produce 1 kB records to them in turn", section, "MB/s", Better.MORE),
            Row("partitions_memory", "resident memory with them", section, "MB", Better.LESS),
            Row("partitions_stop", "clean stop with them", section, "s", Better.LESS),
            Row("partitions_start", "start with them, until each acknowledged a record", section, "s", Better.LESS),
        )
        super().__init__("partitions", rows)

    def warm_up(self, bench: Bench, side: Side) -> None:
        """Does nothing, because every round has a fresh broker."""

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        count = self.PARTITIONS
        with bench.fresh_broker(side, "partitions") as broker:
            broker.launch()
            broker.wait_ready()
            create_seconds = self._create(bench, broker)
            where = (broker.host, broker.port, _TOPIC)
            metadata = programs.run(bench.tools.probe, "metadata", *where, _METADATA_REQUESTS)
            if metadata["partitions"] != count:
                raise programs.LoadError(f"the metadata names {metadata['partitions']:.0f} of {count} partitions")
            load = (broker.bootstrap, _TOPIC, count, bench.scaled(_RECORDS), _RECORD_BYTES, "1", "none")
            produced = programs.run(bench.tools.client, "produce", *load)
            memory = meters.resident_bytes(broker.pid)
            stopping = time.monotonic()
            broker.stop()
            stopped = time.monotonic()
            start_seconds, _ = seconds_until_ready(bench, broker, _TOPIC, count)
        return {
            "partitions_create": create_seconds,
            "partitions_metadata": metadata["p50_us"] / 1000,
            "partitions_produce": produced["bytes"] / produced["seconds"] / 1e6,
            "partitions_memory": memory / 1e6,
            "partitions_stop": stopped - stopping,
            "partitions_start": start_seconds,
        }

    def _create(self, bench: Bench, broker: BrokerProcess) -> float:
        topics = Topics(broker)
        began = time.monotonic_ns()
        topics.start_to_create(_TOPIC, self.PARTITIONS)
        arguments = (broker.host, broker.port, _TOPIC, self.PARTITIONS, READY_TIMEOUT_SECONDS)
        ready = programs.run(bench.tools.probe, "ready", *arguments)
        return (ready["ready_at_ns"] - began) / 1e9
