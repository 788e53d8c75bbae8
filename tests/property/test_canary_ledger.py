"""The canary's ledger beside a model of the log that it watches: every loss is counted, and nothing else is."""

from dataclasses import dataclass, field
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from kaspar.monitor.canary.partition_ledger import PartitionLedger

Step = Literal["deliver", "lose the response", "lose the request", "poll", "truncate", "retain", "foreign", "double"]
STEPS: tuple[Step, ...] = (
    "deliver",
    "lose the response",
    "lose the request",
    "poll",
    "truncate",
    "retain",
    "foreign",
    "double",
)
FOREIGN = -1


@dataclass
class Model:
    """A log, and what is true of the records in it."""

    ledger: PartitionLedger
    log: list[tuple[int, int]] = field(default_factory=list)
    """Offsets and sequence numbers."""
    start: int = 0
    acknowledged: set[int] = field(default_factory=set)
    was_read: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    expired: set[int] = field(default_factory=set)
    doubled: int = 0
    hides_truncation: bool = False
    now_ms: float = 0

    @property
    def end(self) -> int:
        return self.log[-1][0] + 1 if self.log else self.start

    def append(self, sequence: int) -> int:
        self.log.append((self.end, sequence))
        return self.log[-1][0]

    def deliver(self, *, is_stored: bool = True, is_acknowledged: bool = True) -> None:
        sequence = self.ledger.begin(self.now_ms)
        assert sequence is not None
        offset = self.append(sequence) if is_stored else None
        if is_acknowledged and offset is not None:
            self.acknowledged.add(sequence)
            self.ledger.acknowledge(sequence, offset, self.now_ms)
            self.hides_truncation = False
        else:
            self.ledger.fail(sequence, self.now_ms)

    def poll(self) -> None:
        """What a fetch does."""
        assert self.ledger.position is not None
        if not self.start <= self.ledger.position <= self.end:
            self.ledger.relocate(self.ledger.position, self.start, self.end, self.now_ms)
        for offset, sequence in self.log:
            if offset >= self.ledger.position:
                if sequence != FOREIGN:
                    self.was_read.add(sequence)
                    self.ledger.read(sequence, offset, self.now_ms)
                self.ledger.advance(offset + 1, self.now_ms)

    def see_truncation(self) -> None:
        """It shows with the next record that is acknowledged. Others would hide it, and take the offsets of those that
        were lost."""
        if self.hides_truncation:
            self.deliver()
            self.poll()

    def truncate(self, count: int) -> None:
        removed = {sequence for _, sequence in self.log[max(len(self.log) - count, 0) :]}
        del self.log[max(len(self.log) - count, 0) :]
        self.hides_truncation |= bool(removed)
        left = {sequence for _, sequence in self.log}
        self.lost |= (removed - left) & self.acknowledged - self.expired

    def retain(self, count: int) -> None:
        """Unread records that are deleted are expired once the reader finds out, at its next fetch."""
        removed = {sequence for _, sequence in self.log[:count]}
        self.start = self.log[count][0] if count < len(self.log) else self.end
        del self.log[:count]
        self.expired |= removed & self.acknowledged - self.was_read
        self.poll()

    def double(self) -> None:
        """A record that was acknowledged last is in the log once more."""
        self.poll()
        if self.log and self.log[-1][1] in self.acknowledged:
            self.append(self.log[-1][1])
            self.doubled += 1
            self.poll()
            del self.log[-2]  # so that the model's truncation need not tell the two apart


def run(model: Model, step: Step, count: int) -> None:
    match step:
        case "deliver":
            model.deliver()
        case "lose the response":
            model.see_truncation()
            model.deliver(is_acknowledged=False)
        case "lose the request":
            model.deliver(is_stored=False)
        case "poll":
            model.poll()
        case "truncate":
            model.truncate(count)
        case "retain":
            model.retain(count)
        case "foreign":
            model.see_truncation()
            model.append(FOREIGN)
        case "double":
            pass


@given(st.lists(st.tuples(st.sampled_from([each for each in STEPS if each != "double"]), st.integers(0, 5))))
def test_exactly_the_truncated_records_are_lost_and_the_retained_ones_expired(steps: list[tuple[Step, int]]) -> None:
    model = Model(PartitionLedger(late_ms=5_000, window_ms=60_000))
    model.ledger.start(0)
    for step, count in steps:
        run(model, step, count)
        model.now_ms += 1
    model.deliver()  # a truncation of unread records shows with the next one that is acknowledged
    model.poll()
    counts = model.ledger.counts()
    assert counts.lost == len(model.lost)
    assert counts.expired == len(model.expired)
    assert counts.produced == len(model.acknowledged)
    assert (counts.doubled, counts.out_of_order, counts.late) == (0, 0, 0)


@given(st.lists(st.sampled_from(["deliver", "lose the response", "poll", "double"])))
def test_every_doubled_record_is_counted(steps: list[Step]) -> None:
    model = Model(PartitionLedger(late_ms=5_000, window_ms=60_000))
    model.ledger.start(0)
    for step in steps:
        if step == "double":
            model.double()
        else:
            run(model, step, 0)
    model.poll()
    assert model.ledger.counts().doubled == model.doubled
    assert model.ledger.counts().lost == 0
