"""Transactions: their rate, and how fast read_committed readers get their records."""

from collections.abc import Mapping

from bench import programs
from bench.bench import Bench
from bench.cases.case import Case
from bench.rows import Better, Row
from bench.sides import Side
from bench.topics import Topics

_SECTION = "Transactions"
_GOAL = 1.0
_RECORD_BYTES = 100
_PARTITIONS = 8
_READ_RECORDS = 1_000_000
_READ_RECORD_BYTES = 1000
_READ_OF_A_TRANSACTION = 1000
_ABORT_ONE_IN = 10


class Transactions(Case):
    """Successive transactions of one batch each, by producers with their own connections."""

    def __init__(self, records: int, producers: int) -> None:
        self.records = records
        self.producers = producers
        name = f"transactions_r{records}_p{producers}"
        size = "1 record" if records == 1 else f"{records} records"
        by = "1 producer" if producers == 1 else f"{producers} producers"
        title = f"transactions of {size}, {by}"
        rows = (
            Row(name, title, _SECTION, "transactions/s", Better.MORE, _GOAL),
            Row(f"{name}_p99", f"{title}: p99 of their time", _SECTION, "ms", Better.LESS),
            Row(f"{name}_cpu", f"{title}: broker CPU of one", _SECTION, "µs", Better.LESS),
        )
        super().__init__(name, rows)

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        broker = bench.warm_broker(side)
        with Topics(broker).temporary(_PARTITIONS) as topic:
            what = (_PARTITIONS, self.producers, self.records, _RECORD_BYTES, max(2.0, 6 * bench.scale))
            load = bench.run_load(broker, bench.tools.transactions, broker.host, broker.port, topic, *what)
        return {
            self.name: load["rate"],
            f"{self.name}_p99": load["p99_us"] / 1000,
            f"{self.name}_cpu": load.broker_cpu_seconds / load["transactions"] * 1e6,
        }


class ReadCommitted(Case):
    """librdkafka reads a topic in which one in ten transactions was aborted."""

    def __init__(self) -> None:
        name = "consume_committed"
        title = "consume committed 1 kB records, one transaction in ten aborted"
        rows = (
            Row(name, title, _SECTION, "MB/s", Better.MORE, _GOAL),
            Row(f"{name}_cpu", f"{title}: broker CPU per gigabyte", _SECTION, "s/GB", Better.LESS),
        )
        super().__init__(name, rows)
        self._topics: dict[str, tuple[str, int]] = {}  # and the number of committed records in it

    def set_up(self, bench: Bench, side: Side) -> None:
        broker = bench.warm_broker(side)
        topic = Topics(broker).create(_PARTITIONS)
        self._topics[side.name] = (topic, 0)
        records = bench.scaled(_READ_RECORDS)
        bench.touch_memory(records * _READ_RECORD_BYTES)
        what = (_PARTITIONS, records, _READ_RECORD_BYTES, _READ_OF_A_TRANSACTION, _ABORT_ONE_IN)
        written = programs.run(bench.tools.client, "produce-in-transactions", broker.bootstrap, topic, *what)
        self._topics[side.name] = (topic, int(written["records"]))

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        broker = bench.warm_broker(side)
        topic, committed = self._topics[side.name]
        load = bench.run_load(broker, bench.tools.client, "consume", broker.bootstrap, topic, _PARTITIONS, committed)
        return {
            self.name: load["bytes"] / load["seconds"] / 1e6,
            f"{self.name}_cpu": load.broker_cpu_seconds / (load["bytes"] / 1e9),
        }

    def tear_down(self, bench: Bench, side: Side) -> None:
        topic, _ = self._topics.pop(side.name, (None, 0))
        if topic is not None:
            Topics(bench.warm_broker(side)).delete(topic)
