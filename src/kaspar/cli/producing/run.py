"""One run of `kaspar produce`: the topic is there, each entry becomes a record and is sent, at a rate."""

import time
from dataclasses import dataclass

from kaspar.base.errors import Refused
from kaspar.cli.failures import FAILED, INTERRUPTED, NotFound
from kaspar.cli.producing.delivery import INTERRUPTED_FLUSH_S, Delivery
from kaspar.cli.progress import Advance
from kaspar.cli.producing.reading import BadEntry
from kaspar.cli.producing.report import Report
from kaspar.cli.producing.shaping import Shape
from kaspar.cli.producing.sources import Source
from kaspar.cli.topic_lookup import existing_topics, partitions_of
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import Admin


def check_topic(admin: Admin, topic: str, partition: int | None, *, create: bool) -> None:
    """Before anything is read: brokers may create a topic whose name has a typing error. Raises NotFound."""
    try:
        (described,) = existing_topics(admin, [topic])
    except NotFound:
        if not create:
            raise
        result = create_topics(admin, [NewTopic(topic)])[topic]
        if isinstance(result, Refused):
            raise result from None
        return
    if partition is not None:
        partitions_of(described, [partition])


@dataclass(frozen=True, slots=True)
class Run:
    source: Source
    shape: Shape
    delivery: Delivery
    report: Report
    count: int | None
    """How many entries are taken at most."""
    rate: float | None
    advance: Advance

    def run(self) -> int:
        """The exit code. After Ctrl-C, what is on its way is still delivered."""
        try:
            self._send_all()
            self.delivery.flush()
        except KeyboardInterrupt:
            self.delivery.flush(INTERRUPTED_FLUSH_S)
            return INTERRUPTED
        return FAILED if self.report.failed else 0

    def _send_all(self) -> None:
        shaped = self.shape.printed_record if self.source.has_records else self.shape.record
        started = time.monotonic()
        for number, entry in enumerate(self.source.entries):
            if self.rate is not None:
                self.delivery.wait_until(started + number / self.rate)
            try:
                if isinstance(entry, BadEntry):
                    raise ValueError(entry.reason)
                self.delivery.send(shaped(entry))
            except ValueError as problem:
                self.delivery.fail(entry.place, str(problem))
            if self.source.is_typed:
                self.delivery.flush()
            self.advance(self.report.delivered)
            if self.count is not None and number + 1 >= self.count:
                return
