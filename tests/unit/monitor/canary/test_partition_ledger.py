"""What the ledger of a partition decides, event by event."""

import pytest

from kaspar.monitor.canary.partition_ledger import REMEMBERED, PartitionLedger
from kaspar.monitor.canary.report import CanaryStatus, Counts

LATE_MS = 5_000
WINDOW_MS = 60_000


def started(position: int = 0) -> PartitionLedger:
    ledger = PartitionLedger(late_ms=LATE_MS, window_ms=WINDOW_MS)
    ledger.start(position)
    return ledger


def send(ledger: PartitionLedger, now_ms: float = 0) -> int:
    sequence = ledger.begin(now_ms)
    assert sequence is not None
    return sequence


def deliver(ledger: PartitionLedger, offset: int, now_ms: float = 0) -> int:
    """Send, acknowledge and read a record at that offset."""
    sequence = send(ledger, now_ms)
    ledger.acknowledge(sequence, offset, now_ms + 1)
    ledger.read(sequence, offset, now_ms + 2)
    ledger.advance(offset + 1, now_ms + 2)
    return sequence


def test_record_that_is_acknowledged_and_read_is_measured() -> None:
    ledger = started()
    sequence = send(ledger, 100)
    ledger.acknowledge(sequence, 0, 103)
    ledger.read(sequence, 0, 107)
    assert ledger.counts() == Counts(produced=1, consumed=1)
    assert ledger.produce_latencies.values(107) == [3]
    assert ledger.end_to_end_latencies.values(107) == [7]
    assert ledger.status(107) is CanaryStatus.OK


def test_record_may_be_read_before_its_acknowledgement_arrives() -> None:
    ledger = started()
    sequence = send(ledger)
    ledger.read(sequence, 0, 1)
    ledger.advance(1, 1)
    ledger.acknowledge(sequence, 0, 2)
    assert ledger.counts() == Counts(produced=1, consumed=1)
    assert ledger.position == 1


def test_nothing_is_sent_before_the_end_of_the_log_is_known() -> None:
    ledger = PartitionLedger(late_ms=LATE_MS, window_ms=WINDOW_MS)
    assert ledger.begin(0) is None
    assert ledger.status(LATE_MS) is CanaryStatus.STARTING
    assert ledger.status(LATE_MS + 1) is CanaryStatus.UNAVAILABLE


def test_one_record_is_under_way_at_a_time() -> None:
    ledger = started()
    send(ledger)
    assert ledger.begin(1_000) is None


def test_acknowledged_record_that_reading_has_passed_is_lost() -> None:
    ledger = started()
    sequence = send(ledger)
    ledger.acknowledge(sequence, 4, 1)
    ledger.advance(5, 2)
    assert ledger.counts() == Counts(produced=1, lost=1)
    assert ledger.consume.totals(2) == (0, 1)
    assert ledger.status(2) is CanaryStatus.LOSING


def test_record_behind_the_position_is_read_again_before_it_is_called_lost() -> None:
    """Another writer's records had moved the position; then the log was truncated and grew again."""
    ledger = started()
    ledger.advance(60, 0)
    sequence = send(ledger)
    ledger.acknowledge(sequence, 55, 1)
    assert ledger.position == 55
    assert ledger.counts().lost == 0
    ledger.read(sequence, 55, 2)
    ledger.advance(56, 2)
    assert ledger.counts() == Counts(produced=1, consumed=1)


def test_offset_that_is_acknowledged_again_shows_a_truncation() -> None:
    ledger = started()
    for offset in range(5):
        deliver(ledger, offset)
    sequence = send(ledger)
    ledger.acknowledge(sequence, 3, 1)
    assert ledger.counts().lost == 2  # those at 3 and 4, though they were read
    assert ledger.position == 3
    ledger.read(sequence, 3, 2)
    assert ledger.counts() == Counts(produced=6, consumed=6, lost=2)


def test_log_that_ends_before_the_position_has_lost_what_was_acknowledged_behind_its_end() -> None:
    ledger = started()
    for offset in range(5):
        deliver(ledger, offset)
    ledger.truncate(2, 100)
    assert ledger.counts().lost == 3
    assert ledger.position == 2


def test_truncation_is_counted_once() -> None:
    ledger = started()
    for offset in range(5):
        deliver(ledger, offset)
    ledger.truncate(2, 100)
    ledger.truncate(2, 101)
    sequence = send(ledger)
    ledger.acknowledge(sequence, 2, 102)
    assert ledger.counts().lost == 3


def test_end_of_the_log_that_was_looked_up_before_the_position_moved_is_ignored() -> None:
    """The log was truncated to 2, and a record was stored there before the answer arrived."""
    ledger = started()
    for offset in range(5):
        deliver(ledger, offset)
    deliver(ledger, 2, 100)
    assert ledger.position == 3
    ledger.relocate(5, 0, 2, 200)
    assert ledger.counts().lost == 3
    assert ledger.position == 3


def test_position_that_the_log_does_not_have_is_set_to_its_end_or_its_start() -> None:
    ledger = started(5)
    ledger.relocate(5, 0, 3, 0)
    assert ledger.position == 3
    ledger.relocate(3, 10, 20, 0)
    assert ledger.position == 10


def test_retention_expires_records_and_loses_none() -> None:
    ledger = started()
    sequence = send(ledger)
    ledger.acknowledge(sequence, 0, 1)
    ledger.trim(10)
    assert ledger.counts() == Counts(produced=1, expired=1)
    assert ledger.position == 10


def test_deleted_topic_loses_nothing() -> None:
    ledger = started()
    deliver(ledger, 0)
    unread = send(ledger)
    ledger.acknowledge(unread, 1, 1)
    under_way = send(ledger)
    ledger.replace()
    ledger.fail(under_way, 2)
    assert ledger.begin(3) is None
    ledger.start(0)
    deliver(ledger, 0)
    assert ledger.counts() == Counts(produced=3, failed=1, consumed=2, expired=1)


def test_record_at_two_offsets_is_doubled_and_one_that_is_fetched_again_is_not() -> None:
    ledger = started()
    sequence = deliver(ledger, 0)
    ledger.read(sequence, 0, 10)
    assert ledger.counts().doubled == 0
    ledger.read(sequence, 1, 10)
    assert ledger.counts().doubled == 1
    assert ledger.status(10) is CanaryStatus.LOSING


def test_record_read_after_a_later_one_is_out_of_order() -> None:
    ledger = started()
    first = send(ledger)
    ledger.acknowledge(first, 0, 1)
    second = send(ledger)
    ledger.acknowledge(second, 1, 2)
    ledger.read(second, 1, 3)
    ledger.read(first, 2, 4)
    assert ledger.counts().out_of_order == 1


def test_unacknowledged_record_is_neither_lost_late_nor_out_of_order() -> None:
    ledger = started()
    failed = send(ledger)
    ledger.fail(failed, 10_000)
    deliver(ledger, 0, 10_000)
    ledger.read(failed, 1, 20_000)
    ledger.advance(2, 20_000)
    assert ledger.counts() == Counts(produced=1, failed=1, consumed=2)


@pytest.mark.parametrize(("read_ms", "late"), [(LATE_MS, 0), (LATE_MS + 1, 1)])
def test_record_is_late_beyond_the_limit(read_ms: float, late: int) -> None:
    ledger = started()
    sequence = send(ledger)
    ledger.acknowledge(sequence, 0, 1)
    ledger.read(sequence, 0, read_ms)
    assert ledger.counts().late == late
    assert ledger.status(read_ms) is (CanaryStatus.LATE if late else CanaryStatus.OK)


def test_unread_record_makes_the_partition_unavailable_and_is_late_once() -> None:
    ledger = started()
    sequence = send(ledger)
    ledger.acknowledge(sequence, 0, 1)
    assert ledger.status(LATE_MS) is CanaryStatus.OK
    assert ledger.status(LATE_MS + 1) is CanaryStatus.UNAVAILABLE
    ledger.read(sequence, 0, LATE_MS + 100)
    assert ledger.counts().late == 1
    assert ledger.status(LATE_MS + 100) is CanaryStatus.LATE
    assert ledger.consume.totals(LATE_MS + 100) == (0, 1)


def test_attempt_counts_once_for_every_interval_that_it_took() -> None:
    ledger = started()
    deliver(ledger, 0)
    failed = send(ledger, 1_000)
    for second in range(2, 11):
        ledger.begin(second * 1_000)
    ledger.fail(failed, 11_000)
    assert ledger.produce.totals(11_000) == (1, 10)


def test_attempt_that_hangs_counts_against_availability_before_it_ends() -> None:
    ledger = started()
    send(ledger, 0)
    ledger.begin(1_000)
    assert ledger.produce_totals(LATE_MS) == (0, 0)
    assert ledger.produce_totals(LATE_MS + 1) == (0, 2)
    assert ledger.status(LATE_MS + 1) is CanaryStatus.UNAVAILABLE


def test_partition_stays_unavailable_from_failure_to_failure_until_a_record_is_acknowledged() -> None:
    ledger = started()
    ledger.fail(send(ledger, 0), 10_000)
    assert ledger.status(10_000) is CanaryStatus.UNAVAILABLE
    sequence = send(ledger, 11_000)
    assert ledger.status(11_000) is CanaryStatus.UNAVAILABLE
    ledger.acknowledge(sequence, 0, 11_001)
    assert ledger.status(11_001) is CanaryStatus.OK


def test_loss_is_forgotten_by_the_status_after_the_window_and_kept_by_the_counts() -> None:
    ledger = started()
    deliver(ledger, 0)
    ledger.truncate(0, 10)
    assert ledger.status(10 + WINDOW_MS - 1) is CanaryStatus.LOSING
    assert ledger.status(10 + WINDOW_MS) is CanaryStatus.OK
    assert ledger.counts().lost == 1


def test_memory_is_bounded() -> None:
    """Also while nothing can be read: the oldest are given up, and are not lost."""
    ledger = started()
    for offset in range(REMEMBERED + 10):
        ledger.acknowledge(send(ledger), offset, 1)
    assert ledger.counts().expired == 10
    ledger.advance(REMEMBERED + 10, 2)
    assert ledger.counts().lost == REMEMBERED
