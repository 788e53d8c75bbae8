"""A producer's batches against a broker that does its worst: whatever fails, all records are stored once, in order.

The broker takes the requests of a connection in their order and appends what has the next sequence number. It may
refuse a batch, store it and say otherwise, find it too large, or lose the connection with some requests taken; and
those it has not taken by then it may yet take later, when the producer has long sent them again.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client.delivery import Delivery, PendingBatch
from kaspar.client.delivery_terms import DeliveryTerms
from kaspar.records import Record, build_batch, iter_records, read_header

IN_FLIGHT = 5
REMEMBERED = 5
LEADER = 1
PARTITIONS = [TopicPartition("t", number) for number in range(2)]

Request = list[PendingBatch]


class ModelBroker:
    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.logs: dict[TopicPartition, list[bytes | None]] = {partition: [] for partition in PARTITIONS}
        self.expected = dict.fromkeys(PARTITIONS, 0)
        self.last: dict[TopicPartition, list[int]] = {partition: [] for partition in PARTITIONS}
        self.too_large: set[tuple[TopicPartition, int, int]] = set()
        self.ghosts: list[tuple[TopicPartition, bytes]] = []

    def take(self, partition: TopicPartition, batch: bytes, *, may_fail: bool) -> ErrorCode:
        faults = [ErrorCode.NONE]
        header = read_header(batch, 0)
        if may_fail:
            faults += [
                ErrorCode.NOT_ENOUGH_REPLICAS,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                ErrorCode.REQUEST_TIMED_OUT,
            ]
            if header.count > 1 and header.base_sequence >= self.expected[partition]:
                faults.append(ErrorCode.MESSAGE_TOO_LARGE)
        fault = self.data.draw(st.sampled_from(faults))
        if fault is ErrorCode.MESSAGE_TOO_LARGE:
            self.too_large.add((partition, header.base_sequence, header.count))
        elif fault in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            return fault
        response = self.append(partition, batch)
        return response if response is not ErrorCode.NONE else fault

    def append(self, partition: TopicPartition, batch: bytes) -> ErrorCode:
        header = read_header(batch, 0)
        if (partition, header.base_sequence, header.count) in self.too_large:
            return ErrorCode.MESSAGE_TOO_LARGE
        if header.base_sequence == self.expected[partition]:
            self.logs[partition] += [record.value for record in iter_records(batch)]
            self.expected[partition] += header.count
            self.last[partition] = [*self.last[partition], header.base_sequence][-REMEMBERED:]
            return ErrorCode.NONE
        if header.base_sequence in self.last[partition]:
            return self.data.draw(st.sampled_from([ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER]))
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_all_records_are_stored_once_and_in_order(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.tuples(st.sampled_from(PARTITIONS), st.integers(1, 4)), min_size=1, max_size=15))
    given_values: dict[TopicPartition, list[bytes | None]] = {partition: [] for partition in PARTITIONS}
    delivery = Delivery(ProducerIdAndEpoch(1, 0), DeliveryTerms(retry_backoff_ms=1, retry_backoff_max_ms=1))
    broker = ModelBroker(data)
    connection: list[Request] = []
    number = 0
    now_ms = 0
    faults_left = data.draw(st.integers(0, 12))

    while sizes or not delivery.is_empty:
        now_ms += 2
        for partition in delivery.without_leader():
            delivery.set_leader(partition, LEADER)
        steps = ["add"] * bool(sizes) + ["response"] * bool(connection)
        if len(connection) < IN_FLIGHT and LEADER in delivery.leaders_with_work(now_ms):
            steps.append("send")
        if connection and faults_left:
            steps.append("lose")
        if broker.ghosts:
            steps.append("haunt")
        match data.draw(st.sampled_from(steps)):
            case "add":
                partition, count = sizes.pop(0)
                values = [b"%d" % (number + index) for index in range(count)]
                number += count
                given_values[partition] += values
                delivery.add(partition, memoryview(build_batch([Record(0, None, value) for value in values])))
            case "send":
                connection.append(delivery.next_request(LEADER, now_ms))
            case "response":
                for batch in connection.pop(0):
                    code = broker.take(batch.partition, bytes(batch.data), may_fail=faults_left > 0)
                    faults_left -= code not in (ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
                    if code is ErrorCode.NONE:
                        delivery.stored(batch)
                    else:
                        delivery.refused(batch, code, None, now_ms)
            case "lose":
                faults_left -= 1
                taken = data.draw(st.integers(0, len(connection)))
                for index, request in enumerate(connection):
                    for batch in request:
                        if index < taken:
                            broker.append(batch.partition, bytes(batch.data))
                        else:
                            broker.ghosts.append((batch.partition, bytes(batch.data)))
                delivery.lost((batch for request in connection for batch in request), now_ms)
                connection.clear()
            case "haunt":
                broker.append(*broker.ghosts.pop(0))
    assert broker.logs == given_values
