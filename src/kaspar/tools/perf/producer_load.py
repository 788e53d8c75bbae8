"""Sends the records of a load: when they are due, in batches, to partitions chosen like those of Java's producer.

A record's latency begins when it is created. With a throughput limit that is when it is due, so if a cluster stops for
a second, all records of that second are slow. It ends with the response to the record's batch.

Records have no keys, so they go to the sticky partition: one batch is filled for it, and the next batch goes to another
partition, chosen at random (Kafka's BuiltInPartitioner).
"""

import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.producing import RawProducer
from kaspar.client.transactions import (
    TRANSACTIONS_V2,
    Ending,
    add_partitions,
    end_and_continue,
    init_producer_id,
    transaction_support,
)
from kaspar.records.column_writing import BatchBuilder, take_batch
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.perf.payloads import Payloads
from kaspar.tools.perf.producer_settings import ProducerSettings


@dataclass(frozen=True, slots=True)
class LoadOptions:
    topic: str
    num_records: int
    throughput: float
    """Records per second. 0 or less means no limit."""
    warmup_records: int = 0
    transaction_duration_ms: int | None = None


class Stored(NamedTuple):
    """Records that were created together and have just been stored."""

    records: int
    size: int
    latency_ms: int
    after_warmup: bool


class _Run(NamedTuple):
    created_ms: float
    records: int
    size: int
    after_warmup: bool


@dataclass(slots=True)
class _Sizes:
    """The sizes of batches."""

    count: int = 0
    total: int = 0
    uncompressed: int = 0
    largest: int = 0

    def add(self, size: int, uncompressed: int) -> None:
        self.count += 1
        self.total += size
        self.uncompressed += uncompressed
        self.largest = max(self.largest, size)


class ProducerLoad:
    """`on_stored` is called for all records, in the order in which they are stored."""

    def __init__(
        self,
        client: Client,
        settings: ProducerSettings,
        payloads: Payloads,
        options: LoadOptions,
        on_stored: Callable[[Stored, float], None],
        *,
        rng: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._payloads = payloads
        self._options = options
        self._on_stored = on_stored
        self._rng = rng or random.Random()
        self._start_s = time.monotonic()
        self._start_ms = time.time_ns() / 1e6
        self._builder = BatchBuilder(max(1, settings.batch_size), settings.terms.max_request_size)
        self._batch_runs: list[_Run] = []
        self._unstored: dict[TopicPartition, deque[_Run]] = {}
        self._created = 0
        self._stored_records = 0
        self._batches = _Sizes()
        self._transactions = _Transactions(client, settings) if settings.transactional_id is not None else None
        self._producer = self._new_producer(client)
        self._partition = self._next_partition()

    def now_ms(self) -> float:
        """The wall-clock time, on a clock that never jumps."""
        return self._start_ms + (time.monotonic() - self._start_s) * 1000

    def run(self) -> None:
        """Send all records, and wait until they are stored. Raises Refused, OSError or CommandFailed."""
        begin_ms = transaction_ms = self.now_ms()
        while self._created < self._options.num_records:
            now_ms = self.now_ms()
            if (due := self._due(now_ms - begin_ms)) > 0:
                self._create(due, begin_ms, now_ms)
            if self._is_over(transaction_ms, now_ms):
                self._end_transaction()
                transaction_ms = self.now_ms()
            if self._options.throughput > 0:
                self._wait(begin_ms)
        if self._transactions is not None:
            self._end_transaction()
        self._ship()
        self._producer.flush()

    def metrics(self) -> dict[str, float]:
        """The metrics that are measured here, by the names of Kafka's producer metrics."""
        sizes, seconds = self._batches, max(1e-3, (self.now_ms() - self._start_ms) / 1000)
        return {
            "batch-size-avg": sizes.total / max(1, sizes.count),
            "batch-size-max": float(sizes.largest),
            "compression-rate-avg": sizes.total / max(1, sizes.uncompressed),
            "outgoing-byte-total": float(sizes.total),
            "record-send-rate": self._stored_records / seconds,
            "record-send-total": float(self._stored_records),
            "record-size-avg": sizes.uncompressed / max(1, self._created),
            "records-per-request-avg": self._created / max(1, sizes.count),
        }

    def close(self) -> None:
        self._producer.close()

    # --- records ------------------------------------------------------------------------------------------------------

    def _due(self, elapsed_ms: float) -> int:
        """The number of records to create now."""
        left = self._options.num_records - self._created
        if self._options.throughput <= 0:
            return min(left, max(1, self._settings.batch_size // 64))
        return min(left, int(elapsed_ms * self._options.throughput / 1000) + 1 - self._created)

    def _due_ms(self, number: int, begin_ms: float) -> float:
        return begin_ms + number * 1000 / self._options.throughput

    def _create(self, count: int, begin_ms: float, now_ms: float) -> None:
        """Create records. Those of the same millisecond share a run."""
        end = self._created + count
        while self._created < end:
            upto = end
            created_ms = now_ms
            if self._options.throughput > 0:
                created_ms = self._due_ms(self._created, begin_ms)
                upto = min(end, self._created + max(1, int(self._options.throughput / 1000)))
            if self._created < self._options.warmup_records < upto:
                upto = self._options.warmup_records
            self._append(upto - self._created, created_ms)

    def _append(self, count: int, created_ms: float) -> None:
        after_warmup = self._created >= self._options.warmup_records
        self._created += count
        builder, timestamp = self._builder, int(created_ms)
        while count:
            columns, rows, first, last, ends = self._payloads.take(count)
            count -= last - first
            while first < last:
                taken = builder.append(columns, rows, first, last, timestamp)
                if taken > first:
                    run = _Run(created_ms, taken - first, ends[taken] - ends[first], after_warmup)
                    self._batch_runs.append(run)
                if taken < last:
                    self._check_size()
                    self._ship()
                first = taken

    def _check_size(self) -> None:
        if self._builder.too_large:
            raise CommandFailed(
                f"The message is {self._builder.too_large} bytes when serialized which is larger than "
                f"{self._builder.most}, which is the value of the max.request.size configuration."
            )

    # --- batches ------------------------------------------------------------------------------------------------------

    def _ship(self) -> None:
        if not self._builder.count:
            return
        uncompressed = self._builder.size
        batch = take_batch(self._builder, self._settings.codec, self._settings.level)
        self._batches.add(len(batch), uncompressed)
        self._unstored.setdefault(self._partition, deque()).extend(self._batch_runs)
        self._batch_runs = []
        partition, self._partition = self._partition, self._next_partition()
        self._producer.send([(partition, batch)])

    def _wait(self, begin_ms: float) -> None:
        """Wait until the next record is due, or until linger.ms of the current batch is over."""
        until_ms = self._due_ms(self._created, begin_ms) if self._created < self._options.num_records else begin_ms
        if self._batch_runs:
            linger_ms = self._batch_runs[0].created_ms + self._settings.linger_ms
            if linger_ms <= self.now_ms():
                self._ship()
            else:
                until_ms = min(until_ms, linger_ms)
        self._producer.poll(max(0.0, until_ms - self.now_ms()) / 1000)

    def _next_partition(self) -> TopicPartition:
        topic = self._options.topic
        known = self._producer.partitions_of(topic)
        return TopicPartition(topic, self._rng.choice(known.available or tuple(range(known.count))))

    def _stored(self, partition: TopicPartition, count: int) -> None:
        now_ms = self.now_ms()
        self._stored_records += count
        runs = self._unstored[partition]
        while count:
            run = runs.popleft()
            if run.records > count:  # the broker rejected the batch as too large, so it was split
                share = run.size * count // run.records
                runs.appendleft(run._replace(records=run.records - count, size=run.size - share))
                run = run._replace(records=count, size=share)
            count -= run.records
            latency_ms = max(0, int(now_ms - run.created_ms))
            self._on_stored(Stored(run.records, run.size, latency_ms, run.after_warmup), now_ms)

    # --- producer and transactions ------------------------------------------------------------------------------------

    def _new_producer(self, client: Client) -> RawProducer:
        if self._transactions is not None:
            return RawProducer(
                client,
                producer=self._transactions.producer,
                terms=self._settings.terms,
                transactional_id=self._transactions.transactional_id,
                before_first=self._transactions.before_first,
                on_stored=self._stored,
            )
        producer = init_producer_id(client, None).producer if self._settings.idempotent else None
        return RawProducer(client, producer=producer, terms=self._settings.terms, on_stored=self._stored)

    def _is_over(self, transaction_ms: float, now_ms: float) -> bool:
        duration_ms = self._options.transaction_duration_ms
        return self._transactions is not None and duration_ms is not None and now_ms - transaction_ms >= duration_ms

    def _end_transaction(self) -> None:
        assert self._transactions is not None
        self._ship()
        self._producer.flush()
        if self._transactions.end(has_records=bool(self._producer.take_end_offsets())):
            self._producer.renew(
                self._transactions.producer,
                transactional_id=self._transactions.transactional_id,
                before_first=self._transactions.before_first,
            )


class _Transactions:
    """Transactions, one after the other, and the producer of the current one."""

    def __init__(self, client: Client, settings: ProducerSettings) -> None:
        assert settings.transactional_id is not None
        self.transactional_id = settings.transactional_id
        self._client = client
        self._version = transaction_support(client).version
        timeout_ms = settings.transaction_timeout_ms
        self.producer = init_producer_id(client, self.transactional_id, timeout_ms=timeout_ms).producer
        self.before_first = self._add if self._version < TRANSACTIONS_V2 else None

    def _add(self, partitions: Sequence[TopicPartition]) -> None:
        add_partitions(self._client, self.transactional_id, self.producer, partitions)

    def end(self, *, has_records: bool) -> bool:
        """Commit the current transaction. Returns False if there is none: it begins with its first record."""
        if has_records:
            ending = Ending(self.transactional_id, self.producer, committed=True)
            self.producer = end_and_continue(self._client, ending, version=self._version)
        return has_records
