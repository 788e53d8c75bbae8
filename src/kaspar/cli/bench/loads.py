"""The loads of `kaspar bench`: those of Kafka's perf commands, with their measurements."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from kaspar.cli.bench.results import Latencies, Throughput
from kaspar.cli.progress import Advance
from kaspar.client import Client
from kaspar.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from kaspar.tools.perf.consumer_load import Consumed, ConsumerLoad, ConsumerOptions
from kaspar.tools.perf.fetching import FetchTerms
from kaspar.tools.perf.payloads import RandomLetters
from kaspar.tools.perf.producer_load import LoadOptions, ProducerLoad, Stored
from kaspar.tools.perf.producer_settings import producer_settings
from kaspar.tools.perf.round_trips import RoundTrips


@dataclass(frozen=True, slots=True)
class Measured:
    throughput: Throughput
    latencies: Latencies | None = None
    is_complete: bool = True
    """Whether the load ended as planned, and not because no records arrived for some time."""

    def row(self) -> dict[str, object]:
        return {**self.throughput.row(), **(self.latencies.row() if self.latencies is not None else {})}


def produce(
    client: Client,
    topic: str,
    properties: Mapping[str, str],
    *,
    records: int,
    size: int,
    rate: float | None,
    advance: Advance,
) -> Measured:
    """Write records. The latency of a record is the time from when it is due until the response to its batch."""
    latencies = Latencies()
    stored_records = stored_bytes = 0

    def stored(each: Stored, now_ms: float) -> None:
        nonlocal stored_records, stored_bytes
        stored_records += each.records
        stored_bytes += each.size
        latencies.add(each.latency_ms, each.records)
        advance(stored_records)

    options = LoadOptions(topic, records, rate if rate is not None else -1)
    load = ProducerLoad(client, producer_settings(properties), RandomLetters(size), options, stored)
    try:
        started = time.monotonic()
        load.run()
        seconds = time.monotonic() - started
    finally:
        load.close()
    return Measured(Throughput(stored_records, stored_bytes, seconds), latencies)


def consume(
    client: Client, topic: str, *, group: str, records: int, timeout_s: float, read_committed: bool, advance: Advance
) -> Measured:
    """Read records as the only member of a group. The time until it has partitions is not counted."""
    options = ConsumerOptions(
        group_id=group,
        topics=[topic],
        num_records=records,
        timeout_ms=int(timeout_s * 1000),
        auto_commit=False,
        max_poll_records=1,
        terms=FetchTerms(isolation_level=READ_COMMITTED if read_committed else READ_UNCOMMITTED),
    )

    def counted(consumed: Consumed) -> None:
        advance(consumed.records)

    load = ConsumerLoad(client, options, counted)
    try:
        started = time.monotonic()
        is_complete = load.run()
        seconds = time.monotonic() - started
    finally:
        load.close()
    seconds -= load.consumed.joining_ms / 1000 + (0 if is_complete else timeout_s)
    return Measured(Throughput(load.consumed.records, load.consumed.size, seconds), is_complete=is_complete)


def pass_on(client: Client, topic: str, *, records: int, size: int, acks: int, advance: Advance) -> Measured:
    """Send one record at a time from a producer to a consumer. The first one opens connections and is not counted."""
    latencies = Latencies()
    value = b"x" * size
    with RoundTrips(client, topic, acks) as round_trips:
        round_trips.measure(None, value, ())
        started = time.monotonic()
        for number in range(1, records + 1):
            latencies.add(round(round_trips.measure(None, value, ()), 2))
            advance(number)
        seconds = time.monotonic() - started
    return Measured(Throughput(records, records * size, seconds), latencies)
