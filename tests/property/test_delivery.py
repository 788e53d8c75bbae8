"""A producer's batches against a broker that does its worst: whatever fails, all records are stored once, in order,
and where they end is known unless the broker has forgotten it.

The broker takes the requests of a connection in their order and appends what has the next sequence number. It may
refuse a batch, store it and say otherwise, find it too large, or lose the connection with some requests taken; and
those it has not taken by then it may yet take later, when the producer has long sent them again.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import NO_OFFSET, ProducerIdAndEpoch, TopicPartition
from kaspar.client.delivery import Delivery, PendingBatch
from kaspar.client.delivery_terms import DeliveryTerms
from kaspar.records import Record, build_batch, iter_records, read_header

IN_FLIGHT = 5
REMEMBERED = 5
LEADER = 1
PARTITIONS = [TopicPartition("t", number) for number in range(2)]

Request = list[PendingBatch]
Response = tuple[ErrorCode, int]


class ModelBroker:
    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.logs: dict[TopicPartition, list[bytes | None]] = {partition: [] for partition in PARTITIONS}
        self.expected = dict.fromkeys(PARTITIONS, 0)
        self.last: dict[TopicPartition, list[int]] = {partition: [] for partition in PARTITIONS}
        self.too_large: set[tuple[TopicPartition, int, int]] = set()
        self.ghosts: list[tuple[TopicPartition, bytes]] = []
        self.forgotten: set[tuple[TopicPartition, int]] = set()
        """The ends of batches whose offset was not in the response."""

    def take(self, partition: TopicPartition, batch: bytes, *, may_fail: bool) -> Response:
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
            return fault, NO_OFFSET
        code, offset = self.append(partition, batch)
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER and offset == NO_OFFSET:
            self.forgotten.add((partition, header.base_sequence + header.count))
        return (code if code is not ErrorCode.NONE else fault), offset

    def append(self, partition: TopicPartition, batch: bytes) -> Response:
        header = read_header(batch, 0)
        if (partition, header.base_sequence, header.count) in self.too_large:
            return ErrorCode.MESSAGE_TOO_LARGE, NO_OFFSET
        if header.base_sequence == self.expected[partition]:
            self.logs[partition] += [record.value for record in iter_records(batch)]
            self.expected[partition] += header.count
            self.last[partition] = [*self.last[partition], header.base_sequence][-REMEMBERED:]
            return ErrorCode.NONE, header.base_sequence
        if header.base_sequence in self.last[partition]:
            code = self.data.draw(st.sampled_from([ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER]))
            is_known = code is ErrorCode.NONE or self.data.draw(st.booleans())
            return code, header.base_sequence if is_known else NO_OFFSET
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NO_OFFSET

    def end(self, partition: TopicPartition) -> int:
        """As the producer should know it. Its records are the only ones, so sequence numbers are offsets."""
        end = len(self.logs[partition])
        return NO_OFFSET if (partition, end) in self.forgotten else end


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
                    code, offset = broker.take(batch.partition, bytes(batch.data), may_fail=faults_left > 0)
                    faults_left -= code not in (ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
                    if code is ErrorCode.NONE:
                        delivery.stored(batch, offset)
                    else:
                        delivery.refused(batch, code, None, now_ms, base_offset=offset)
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
    assert delivery.take_end_offsets() == {
        partition: broker.end(partition) for partition, values in given_values.items() if values
    }
