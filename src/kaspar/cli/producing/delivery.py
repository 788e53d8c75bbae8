"""Hands records to librdkafka and follows each until a broker has it, or refuses it."""

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kaspar.cli.producing.report import Report
from kaspar.cli.producing.shaping import NewRecord

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_POLL_S: Final = 0.1
INTERRUPTED_FLUSH_S: Final = 5.0
"""How long Ctrl-C waits for records that are on their way."""


class Delivery:
    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        report: Report,
        *,
        on_delivered: Callable[[str], None] | None = None,
    ) -> None:
        """`on_delivered` gets the place of each record in the log: orders/0@17."""
        from confluent_kafka import Producer

        self._producer = Producer(dict(settings))
        self._topic = topic
        self._report = report
        self._on_delivered = on_delivered

    def send(self, record: NewRecord) -> None:
        """Waits while the client's buffer is full."""
        from confluent_kafka import KafkaException

        options: dict[str, Any] = {}
        if record.partition is not None:
            options["partition"] = record.partition
        if record.timestamp_ms is not None:
            options["timestamp"] = record.timestamp_ms
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers) or None,
                    on_delivery=functools.partial(self._delivered, record.place),
                    **options,
                )
            except BufferError:
                self._producer.poll(_POLL_S)
            except KafkaException as problem:  # refused before it was sent, for instance because of its size
                self.fail(record.place, problem.args[0].str())
                return
            else:
                self._producer.poll(0)
                return

    def wait_until(self, due: float) -> None:
        """Until this time of the monotonic clock, while deliveries are reported."""
        while (left := due - time.monotonic()) > 0:
            self._producer.poll(min(left, _POLL_S))

    def fail(self, place: str, reason: str) -> None:
        if (sentence := self._report.add_failed(place, reason)) is not None:
            print(f"kaspar: {sentence}", file=sys.stderr)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every record is delivered or has failed; with a timeout, those that are left count as failed."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while (left := self._producer.flush(_POLL_S)) > 0:
            if until is not None and time.monotonic() > until:
                self._report.failed += left
                with contextlib.suppress(Exception):
                    self._producer.purge()
                return

    def _delivered(self, place: str, error: "KafkaError | None", message: "Message") -> None:
        if error is not None:
            self.fail(place, error.str())
            return
        partition = message.partition() or 0
        self._report.add_delivered(partition, len(message.key() or b"") + len(message.value() or b""))
        if self._on_delivered is not None:
            offset = message.offset()
            self._on_delivered(f"{self._topic}/{partition}" + ("" if offset is None or offset < 0 else f"@{offset}"))
