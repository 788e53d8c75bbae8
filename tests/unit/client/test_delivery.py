"""The rules of order, retries and idempotence of a producer's batches, without sockets or a clock."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_OFFSET, ProducerIdAndEpoch, TopicPartition
from kaspar.client.delivery import Delivery, PendingBatch
from kaspar.client.delivery_terms import DeliveryTerms
from kaspar.records import Record, build_batch, check_batch, iter_records, read_header

PRODUCER = ProducerIdAndEpoch(12, 3)
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
LEADER, OTHER = 1, 2


def batch(*values: bytes) -> memoryview:
    return memoryview(build_batch([Record(0, None, value) for value in values]))


def delivery(terms: DeliveryTerms | None = None, *, partitions: tuple[TopicPartition, ...] = (P0,)) -> Delivery:
    """With a batch for each partition. The leader knows the producer already, so several may be in flight."""
    made = Delivery(PRODUCER, terms or DeliveryTerms(retry_backoff_ms=10, retry_backoff_max_ms=10))
    for partition in partitions:
        made.add(partition, batch(b"first"))
        made.set_leader(partition, LEADER)
        made._queues[partition].is_known = True
    return made


def sequences(batches: list[PendingBatch]) -> list[int]:
    return [read_header(one.data, 0).base_sequence for one in batches]


def under_way(delivery: Delivery, requests: int, *, leader: int = LEADER, now_ms: int = 0) -> list[PendingBatch]:
    """Of one partition: what that many requests carry."""
    return [one for _ in range(requests) for one in delivery.next_request(leader, now_ms)]


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_batches_are_numbered_by_their_records_and_stamped() -> None:
    sent = delivery()
    sent.add(P0, batch(b"a", b"b"))
    sent.add(P0, batch(b"c"))
    batches = under_way(sent, 3)
    assert sequences(batches) == [0, 1, 3]
    checked = check_batch(batches[1].data, 0, len(batches[1].data))
    assert (checked.producer_id, checked.producer_epoch, checked.is_transactional) == (12, 3, False)


def test_batches_of_a_transaction_say_so() -> None:
    sent = Delivery(PRODUCER, DeliveryTerms(), transactional=True)
    sent.add(P0, batch(b"a"))
    sent.set_leader(P0, LEADER)
    (one,) = sent.next_request(LEADER, 0)
    assert check_batch(one.data, 0, len(one.data)).is_transactional


def test_without_a_producer_batches_have_no_numbers() -> None:
    sent = Delivery(None, DeliveryTerms())
    sent.add(P0, batch(b"a"))
    sent.set_leader(P0, LEADER)
    header = read_header(sent.next_request(LEADER, 0)[0].data, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)


def test_sequence_numbers_wrap_to_zero() -> None:
    sent = delivery()
    sent._queues[P0].next_sequence = (1 << 31) - 1
    sent.add(P0, batch(b"a", b"b"))
    sent.add(P0, batch(b"c"))
    assert sequences(under_way(sent, 3)) == [0, (1 << 31) - 1, 1]


# --- requests ---------------------------------------------------------------------------------------------------------


def test_a_request_has_one_batch_for_each_partition() -> None:
    sent = delivery(partitions=(P0, P1))
    sent.add(P0, batch(b"second"))
    assert [[one.partition for one in sent.next_request(LEADER, 0)] for _ in range(3)] == [[P0, P1], [P0], []]


def test_nothing_is_sent_behind_the_first_batch_of_a_producer_until_it_is_stored() -> None:
    sent = delivery()
    sent._queues[P0].is_known = False
    sent.add(P0, batch(b"second"))
    sent.add(P0, batch(b"third"))
    (first,) = under_way(sent, 2)
    sent.refused(first, ErrorCode.NOT_LEADER_OR_FOLLOWER, None, 0)
    sent.set_leader(P0, OTHER)
    (first,) = under_way(sent, 2, leader=OTHER, now_ms=10)
    sent.stored(first)
    assert sequences(under_way(sent, 2, leader=OTHER, now_ms=10)) == [1, 2]


def test_a_request_is_no_larger_than_it_may_be_unless_it_is_one_batch() -> None:
    sent = delivery(DeliveryTerms(max_request_size=100), partitions=(P0, P1))
    assert [len(sent.next_request(LEADER, 0)) for _ in range(3)] == [1, 1, 0]


def test_partitions_whose_leader_is_unknown_wait() -> None:
    sent = delivery()
    sent.set_leader(P0, None)
    assert (sent.without_leader(), sent.leaders_with_work(0)) == ([P0], set())
    sent.set_leader(P0, OTHER)
    assert (sent.without_leader(), sent.leaders_with_work(0)) == ([], {OTHER})


def test_nothing_goes_to_a_new_leader_while_the_old_one_may_still_respond() -> None:
    sent = delivery()
    sent.add(P0, batch(b"second"))
    (first,) = sent.next_request(LEADER, 0)
    sent.set_leader(P0, OTHER)
    assert sent.next_request(OTHER, 0) == []
    sent.stored(first)
    assert sequences(sent.next_request(OTHER, 0)) == [1]


# --- responses --------------------------------------------------------------------------------------------------------


def test_what_is_stored_frees_its_memory() -> None:
    sent = delivery()
    assert sent.held_bytes == len(batch(b"first"))
    sent.stored(under_way(sent, 1)[0])
    assert sent.is_empty


def test_a_duplicate_is_stored() -> None:
    sent = delivery()
    sent.refused(under_way(sent, 1)[0], ErrorCode.DUPLICATE_SEQUENCE_NUMBER, None, 0)
    assert sent.is_empty


def test_refused_batch_is_resent_first_once_nothing_is_in_flight() -> None:
    sent = delivery()
    for value in (b"1", b"2", b"3"):
        sent.add(P0, batch(value))
    first, second, third = under_way(sent, 3)
    sent.refused(first, ErrorCode.NOT_ENOUGH_REPLICAS, None, 0)
    assert sent.next_request(LEADER, 1_000) == []
    sent.refused(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)
    sent.refused(third, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)
    assert sequences(under_way(sent, 5, now_ms=1_000)) == [0, 1, 2, 3]


def test_a_batch_stored_behind_a_refused_one_is_not_sent_again() -> None:
    sent = delivery()
    sent.add(P0, batch(b"second"))
    first, second = under_way(sent, 2)
    sent.refused(first, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, None, 0)
    sent.stored(second)
    assert sequences(under_way(sent, 5, now_ms=1_000)) == [0]


def test_a_retry_waits_for_the_backoff() -> None:
    sent = delivery()
    sent.refused(under_way(sent, 1)[0], ErrorCode.NOT_ENOUGH_REPLICAS, None, 5)
    assert sent.next_event_ms() == 15
    assert sent.next_request(LEADER, 14) == []
    assert sequences(sent.next_request(LEADER, 15)) == [0]


def test_leader_is_looked_up_after_not_leader_or_follower() -> None:
    sent = delivery()
    sent.refused(under_way(sent, 1)[0], ErrorCode.NOT_LEADER_OR_FOLLOWER, None, 0)
    assert sent.without_leader() == [P0]


def test_all_that_was_under_way_on_a_lost_connection_is_sent_again_in_order() -> None:
    sent = delivery()
    sent.add(P0, batch(b"second"))
    sent.add(P0, batch(b"third"))
    sent.lost(under_way(sent, 2), 0)
    sent.set_leader(P0, OTHER)
    assert sequences(under_way(sent, 5, leader=OTHER, now_ms=1_000)) == [0, 1, 2]


def test_a_missing_batch_that_nothing_explains_ends_it() -> None:
    sent = delivery()
    with pytest.raises(Refused, match=r"Writing to t-0 failed: .*missing.*OUT_OF_ORDER_SEQUENCE_NUMBER") as caught:
        sent.refused(under_way(sent, 1)[0], ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TXN_STATE])
def test_what_no_retry_mends_is_raised_at_once(code: ErrorCode) -> None:
    sent = delivery()
    with pytest.raises(Refused, match=f"t-0.*{code.name}"):
        sent.refused(under_way(sent, 1)[0], code, None, 0)


# --- where it was stored ----------------------------------------------------------------------------------------------


def test_the_end_of_a_partition_is_after_the_last_record_of_its_last_batch() -> None:
    sent = delivery(partitions=(P0, P1))
    sent.add(P0, batch(b"a", b"b"))
    (first, other), (second,) = sent.next_request(LEADER, 0), sent.next_request(LEADER, 0)
    sent.stored(first, 10)
    sent.stored(other, 500)
    sent.stored(second, 15)  # other producers write, too
    assert sent.take_end_offsets() == {P0: 17, P1: 501}


def test_ends_are_taken_once() -> None:
    sent = delivery()
    sent.stored(under_way(sent, 1)[0], 10)
    assert sent.take_end_offsets() == {P0: 11}
    assert sent.take_end_offsets() == {}


def test_an_offset_that_is_reported_late_does_not_set_the_end_back() -> None:
    sent = delivery()
    sent.add(P0, batch(b"second"))
    first, second = under_way(sent, 2)
    sent.refused(first, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, None, 0)
    sent.stored(second, 11)
    sent.stored(under_way(sent, 1, now_ms=1_000)[0], 10)
    assert sent.take_end_offsets() == {P0: 12}


@pytest.mark.parametrize(("offset", "end"), [(10, 11), (NO_OFFSET, NO_OFFSET)])
def test_the_end_is_unknown_if_the_last_batch_is_a_duplicate_without_an_offset(offset: int, end: int) -> None:
    sent = delivery()
    sent.refused(under_way(sent, 1)[0], ErrorCode.DUPLICATE_SEQUENCE_NUMBER, None, 0, base_offset=offset)
    assert sent.take_end_offsets() == {P0: end}


def test_an_earlier_duplicate_without_an_offset_does_not_matter() -> None:
    sent = delivery()
    sent.add(P0, batch(b"second"))
    first, second = under_way(sent, 2)
    sent.refused(first, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, None, 0)
    sent.stored(second, 20)
    assert sent.take_end_offsets() == {P0: 21}


def test_the_end_of_a_split_batch_is_that_of_its_second_half() -> None:
    sent = Delivery(PRODUCER, DeliveryTerms(retry_backoff_ms=0))
    sent.add(P0, batch(b"a", b"b", b"c"))
    sent.set_leader(P0, LEADER)
    sent.refused(under_way(sent, 1)[0], ErrorCode.MESSAGE_TOO_LARGE, None, 0)
    (first,) = under_way(sent, 2)
    sent.stored(first, 7)
    (second,) = under_way(sent, 1)
    sent.refused(second, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, None, 0)
    assert sent.take_end_offsets() == {P0: NO_OFFSET}
    sent.add(P0, batch(b"d"))
    sent.stored(under_way(sent, 1)[0], 10)
    assert sent.take_end_offsets() == {P0: 11}


# --- too large --------------------------------------------------------------------------------------------------------


def test_a_batch_too_large_is_split_and_keeps_its_numbers_and_its_place() -> None:
    sent = delivery()
    sent.add(P0, batch(b"a", b"b", b"c"))
    sent.add(P0, batch(b"last"))
    first, large, last = under_way(sent, 3)
    sent.stored(first)
    sent.refused(large, ErrorCode.MESSAGE_TOO_LARGE, None, 0)
    sent.refused(last, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)
    again = under_way(sent, 5, now_ms=1_000)
    assert [[record.value for record in iter_records(one.data)] for one in again] == [[b"a"], [b"b", b"c"], [b"last"]]
    assert sequences(again) == [1, 2, 4]


def test_error_for_one_record_that_is_too_large_has_its_size() -> None:
    sent = delivery()
    size = len(batch(b"first"))
    with pytest.raises(Refused, match=rf"t-0 failed: a record of {size} bytes .*max\.message\.bytes"):
        sent.refused(under_way(sent, 1)[0], ErrorCode.MESSAGE_TOO_LARGE, None, 0)


# --- patience ---------------------------------------------------------------------------------------------------------


def test_retries_are_counted() -> None:
    sent = delivery(DeliveryTerms(retries=1, retry_backoff_ms=0))
    sent.refused(under_way(sent, 1)[0], ErrorCode.NOT_ENOUGH_REPLICAS, None, 0)
    with pytest.raises(Refused, match="2 attempts failed; retries is 1"):
        sent.refused(under_way(sent, 1)[0], ErrorCode.NOT_ENOUGH_REPLICAS, None, 0)


def test_a_batch_is_given_up_after_the_delivery_timeout() -> None:
    sent = delivery(DeliveryTerms(delivery_timeout_ms=100, retry_backoff_ms=0))
    sent.refused(under_way(sent, 1)[0], ErrorCode.NOT_ENOUGH_REPLICAS, None, 50)
    with pytest.raises(Refused, match=r"not stored within delivery\.timeout\.ms, 100 ms \(NOT_ENOUGH_REPLICAS\)"):
        sent.refused(under_way(sent, 1, now_ms=60)[0], ErrorCode.NOT_ENOUGH_REPLICAS, None, 101)


def test_batch_with_a_late_response_is_retried_once_more() -> None:
    """The caller may have been away for longer than the timeout: the connection was lost meanwhile."""
    sent = delivery(DeliveryTerms(delivery_timeout_ms=100, retry_backoff_ms=0))
    sent.lost(under_way(sent, 1), 10_000)
    sent.set_leader(P0, OTHER)
    assert sequences(under_way(sent, 1, leader=OTHER, now_ms=10_000)) == [0]


def test_a_leader_that_cannot_be_reached_is_given_up_in_time() -> None:
    sent = delivery(DeliveryTerms(delivery_timeout_ms=100, retry_backoff_ms=0))
    sent.unreachable(LEADER, 0)
    assert sent.without_leader() == [P0]
    sent.set_leader(P0, LEADER)
    with pytest.raises(Refused, match="NETWORK_EXCEPTION"):
        sent.unreachable(LEADER, 101)


def test_a_partition_without_a_leader_is_given_up_in_time() -> None:
    sent = delivery(DeliveryTerms(delivery_timeout_ms=100))
    sent.leaderless(P0, ErrorCode.LEADER_NOT_AVAILABLE, 0)
    with pytest.raises(Refused, match="LEADER_NOT_AVAILABLE"):
        sent.leaderless(P0, ErrorCode.LEADER_NOT_AVAILABLE, 101)
