"""Delivery reports of one request, which arrive in another thread."""

import asyncio
import functools
import random
import threading
from collections.abc import Callable, Coroutine
from typing import Any, cast

from confluent_kafka import KafkaError, Message

from kaspar.rest.errors import KAFKA, KAFKA_RETRIABLE
from kaspar.rest.producing import Delivered, Undelivered
from kaspar.rest.producing.batch import Batch


class Report:
    """As much of a message as a delivery report needs."""

    def __init__(self, offset: int, timestamp: tuple[int, int] = (1, 5)) -> None:
        self._offset = offset
        self._timestamp = timestamp

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return self._timestamp


def in_event_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


def report(batch: Batch, index: int, offset: int, error: KafkaError | None = None) -> None:
    batch.on_delivery(index)(error, cast(Message, Report(offset)))


@in_event_loop
async def test_outcomes_are_in_the_order_of_the_records() -> None:
    batch = Batch(3, asyncio.get_running_loop())
    for _ in range(2):
        batch.sent()
    batch.refuse(1, Undelivered(KAFKA, "too large"))
    waiting = asyncio.ensure_future(batch.wait())
    await asyncio.sleep(0)
    report(batch, 2, 8)
    report(batch, 0, 7, KafkaError(KafkaError._MSG_TIMED_OUT))
    first, second, third = await waiting
    assert isinstance(first, Undelivered)
    assert (first.kind, second, third) == (KAFKA_RETRIABLE, Undelivered(KAFKA, "too large"), Delivered(3, 8, 5))


@in_event_loop
async def test_reports_may_all_come_before_the_last_record_is_sent() -> None:
    batch = Batch(1, asyncio.get_running_loop())
    report(batch, 0, 7)
    batch.sent()
    assert await asyncio.wait_for(batch.wait(), 5) == [Delivered(3, 7, 5)]


@in_event_loop
async def test_a_batch_of_refused_records_waits_for_nothing() -> None:
    batch = Batch(1, asyncio.get_running_loop())
    batch.refuse(0, Undelivered(KAFKA, "no"))
    assert await asyncio.wait_for(batch.wait(), 5) == [Undelivered(KAFKA, "no")]


@in_event_loop
async def test_no_report_is_missed_between_the_threads() -> None:
    def report_all(batch: Batch, size: int) -> None:
        for index in range(size):
            report(batch, index, index)

    for seed in range(200):
        size = random.Random(seed).randrange(1, 30)
        batch = Batch(size, asyncio.get_running_loop())
        thread = threading.Thread(target=report_all, args=(batch, size))
        for index in range(size):
            batch.sent()
            if index == size // 2:
                thread.start()
        outcomes = await asyncio.wait_for(batch.wait(), 5)
        thread.join()
        assert [each.offset for each in outcomes if isinstance(each, Delivered)] == list(range(size))
