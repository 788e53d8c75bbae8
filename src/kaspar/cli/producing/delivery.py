"""Passes records to librdkafka and tracks each until a broker has stored or refused it."""

import functools
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kaspar.cli.interrupts import Interrupts
from kaspar.cli.producing.report import Report
from kaspar.cli.producing.shaping import NewRecord
from kaspar.cli.record_clients import is_permission, problem_of

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_POLL_S: Final = 0.1
_POLL_EVERY_S: Final = 0.005
"""How often outcomes are polled while records are sent without a pause."""
INTERRUPTED_FLUSH_S: Final = 5.0
"""How long Ctrl-C waits for records in flight."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    place: str
    error: "KafkaError | None"
    partition: int
    offset: int | None
    size: int


class Delivery:
    """Delivers records. Callbacks only collect outcomes, which are reported after the call: see `interrupts`."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        report: Report,
        interrupts: Interrupts,
        *,
        on_delivered: Callable[[str], None] | None = None,
    ) -> None:
        """`on_delivered` is called with the position of each record in the log: orders/0@17."""
        from confluent_kafka import KafkaException, Producer

        self._refused = KafkaException
        self._producer = Producer(dict(settings))
        self._topic = topic
        self._report = report
        self._interrupts = interrupts
        self._on_delivered = on_delivered
        self._outcomes: deque[_Outcome] = deque()
        self._poll_due_s = 0.0

    def send(self, record: NewRecord) -> None:
        """Send a record. Waits while the client's buffer is full."""
        while True:
            try:
                self._hand_over(record)
            except BufferError:
                self._poll(_POLL_S)
            except self._refused as problem:  # refused before it was sent, for instance because of its size
                self.fail(record.place, problem.args[0].str())
                return
            else:
                if time.monotonic() >= self._poll_due_s:
                    self._poll(0)
                return

    def _hand_over(self, record: NewRecord) -> None:
        options: dict[str, Any] = {}
        if record.partition is not None:
            options["partition"] = record.partition
        if record.timestamp_ms is not None:
            options["timestamp"] = record.timestamp_ms
        self._producer.produce(
            self._topic,
            key=record.key,
            value=record.value,
            headers=list(record.headers) or None,
            on_delivery=functools.partial(self._collect, record.place),
            **options,
        )

    def wait_until(self, due: float) -> None:
        """Wait until this time of the monotonic clock, and report deliveries meanwhile."""
        while (left := due - time.monotonic()) > 0:
            self._poll(min(left, _POLL_S))

    def fail(self, place: str, reason: str) -> None:
        if (sentence := self._report.add_failed(place, reason)) is not None:
            print(f"kaspar: {sentence}", file=sys.stderr)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every record is delivered or has failed. After the timeout the remaining ones count as failed."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while len(self._producer) > 0:
            with self._interrupts.shield():
                self._producer.flush(_POLL_S)
                self._report_outcomes()
            if until is not None and time.monotonic() > until:
                self._report.failed += len(self._producer)
                return

    def _poll(self, timeout_s: float) -> None:
        with self._interrupts.shield():
            self._producer.poll(timeout_s)
            self._report_outcomes()
        self._poll_due_s = time.monotonic() + _POLL_EVERY_S

    def _collect(self, place: str, error: "KafkaError | None", message: "Message") -> None:
        size = len(message.key() or b"") + len(message.value() or b"")
        self._outcomes.append(_Outcome(place, error, message.partition() or 0, message.offset(), size))

    def _report_outcomes(self) -> None:
        """Report the collected outcomes. Raises KasparError if the user may not write to the topic at all."""
        while self._outcomes:
            outcome = self._outcomes.popleft()
            if outcome.error is not None:
                if is_permission(outcome.error):
                    raise problem_of(outcome.error)
                self.fail(outcome.place, outcome.error.str())
                continue
            self._report.add_delivered(outcome.partition, outcome.size)
            if self._on_delivered is not None:
                offset = "" if outcome.offset is None or outcome.offset < 0 else f"@{outcome.offset}"
                self._on_delivered(f"{self._topic}/{outcome.partition}{offset}")
