"""Produce has a shorter way for its most frequent request. Here random requests, good and bad, take both ways: one
broker has the shorter one, the other does without it, and the results are the same.
"""

import asyncio
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.clock import ManualClock
from kaspar.base.ids import ZERO_UUID
from kaspar.broker import services
from kaspar.broker.metrics.topics import TOPIC_COUNTERS
from kaspar.broker.server import Broker
from kaspar.config import BrokerSettings
from kaspar.controller.events import CreateTopics, NewTopic
from kaspar.network import pipeline
from kaspar.network.connection import Connection
from kaspar.protocol import codec, headers, produce
from kaspar.protocol.api import SERVED_VERSIONS, ApiKey
from kaspar.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kaspar.records import Codec
from tests.unit.broker.running import until
from tests.unit.broker.wire import RecordingTransport, frame, receive
from tests.unit.protocol.mutation import mutate
from tests.unit.records.batches import with_fields, with_stale_crc
from tests.unit.storage.logs import NOW_MS, make_batch

VERSIONS: Final = range(SERVED_VERSIONS[ApiKey.PRODUCE].first, SERVED_VERSIONS[ApiKey.PRODUCE].last + 1)
FIRST_WITH_TOPIC_ID: Final = 13
REQUESTS: Final = 150
TOPICS: Final[dict[str, dict[str, str]]] = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "compressed": {"compression.type": "lz4"},
    "uncompressed": {"compression.type": "uncompressed"},
    "synced": {"flush.messages": "1"},
    "small": {"max.message.bytes": "120"},
    "punctual": {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"},
    "few-segments": {"segment.bytes": "1048576"},
    "never-enough": {"min.insync.replicas": "2"},
}
"""By name: what each of them asks of a batch."""


class Side:
    """A broker, and one client's connection to it after the other."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._connect()

    def _connect(self) -> None:
        self.connection = Connection(self.broker.listeners[0], "a test")
        self.transport = RecordingTransport()
        self.connection.connection_made(self.transport)

    async def send(self, request: bytes) -> tuple[bytes, bool, str | None]:
        """The response, whether the connection is closed, and whose it is."""
        receive(self.connection, frame(request))
        await self.broker.appender.finish()
        await self.broker.syncing.finish()
        await until(lambda: not self.connection.requests_under_way)  # a transaction's coordinator may be asked
        closed = self.transport.is_closing()
        outcome = (bytes(self.transport.sent), closed, self.connection.client_id)
        self.transport.sent.clear()
        if closed:
            self.connection.connection_lost(None)
            self._connect()
        return outcome

    def state(self) -> dict[str, object]:
        """Everything that appends leave behind."""
        found: dict[str, object] = {}
        for partition in self.broker.partitions:
            log = partition.log
            found[str(partition.topic_partition)] = (
                [Path(log.folder, f"{base:020}.log").read_bytes() for base in log.segments.base_offsets],
                (log.log_start_offset, log.log_end_offset, partition.high_watermark),
                [(entry.producer_id, entry.producer_epoch, *entry.batches) for entry in log.active_producers()],
            )
        for name, topic in self.broker.partitions.by_name.items():
            found[f"metrics of {name}"] = {counter: getattr(topic.metrics, counter) for counter in TOPIC_COUNTERS}
        metrics_of_produce = self.broker.metrics.requests.of("Produce")
        found["requests"] = (metrics_of_produce.versions(), metrics_of_produce.error_counts())
        found["request bytes"] = metrics_of_produce.request_bytes().sum
        return found


async def start_broker(folder: str) -> Broker:
    values = {
        "node.id": "1",
        "log.dirs": folder,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "kaspar.metrics.listener": "",
    }
    broker = Broker(BrokerSettings.of(values), clock=ManualClock(NOW_MS))
    await broker.start()
    await broker.controller.submit(
        CreateTopics(tuple(NewTopic(name, 2, 1, configs=tuple(configs.items())) for name, configs in TOPICS.items()))
    )
    return broker


class Sender:
    """Makes requests up: mostly of the frequent form, each with something about it that may be unusual."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._sequences: dict[tuple[str, int], int] = {}

    def records(self, topic: str, index: int) -> bytes | None:
        choose = self.random
        values = [b"v" * choose.choice((0, 1, 50)) for _ in range(choose.randint(1, 4))]
        timestamp = NOW_MS + choose.choice((0, 0, 0, -2000, 2000, 1 << 41, 1 - NOW_MS, -1 - NOW_MS))
        key = choose.choice((b"key", b"key", None))
        kind = choose.randrange(16)
        if kind == 0:
            return choose.choice((None, b"", b"short", bytes(61)))
        if kind == 1:
            return bytes(make_batch(values, timestamp=timestamp, codec=choose.choice(tuple(Codec)), key=key))
        if kind in (2, 3, 4):
            number = self._sequences.get((topic, index), 0)
            self._sequences[topic, index] = number + len(values)
            return bytes(
                make_batch(
                    values,
                    timestamp=timestamp,
                    key=key,
                    producer_id=choose.choice((7, 7, 7, 8)),
                    producer_epoch=choose.choice((1, 1, 1, 0)),
                    base_sequence=choose.choice((number, number, number, 0, -1)),
                    transactional=choose.random() < 0.1,
                )
            )
        if kind == 5:
            return bytes(make_batch([bytes(20_000)], timestamp=timestamp, key=key))
        batch = make_batch(values, timestamp=timestamp, key=key)
        if kind == 6:
            field = choose.choice(("base_offset", "attributes", "last_offset_delta", "max_timestamp", "count", "magic"))
            change = with_stale_crc if choose.random() < 0.2 else with_fields
            return bytes(change(batch, **{field: choose.choice((0, 1, 2, 8, 16, 32, 64))}))
        if kind == 7:
            return bytes(batch) + choose.choice((b"more", bytes(batch), bytes(batch[:70])))
        if kind == 8:
            return bytes(batch[: choose.randrange(len(batch))])
        return bytes(batch)

    def request(self) -> tuple[int, ProduceRequest]:
        choose = self.random
        version = choose.choice(VERSIONS)
        names = [choose.choice((*TOPICS, *["plain"] * 5, "nowhere")) for _ in range(choose.choice((1, 1, 1, 1, 1, 2)))]
        indexes = [choose.choice((0, 0, 0, 1, 2)) for _ in range(choose.choice((1, 1, 1, 1, 1, 2)))]
        return version, ProduceRequest(
            transactional_id=choose.choice((None,) * 9 + ("a transaction",)),
            acks=choose.choice((1, 1, 1, -1, -1, 0, 2)),
            timeout_ms=1000,
            topic_data=tuple(
                TopicProduceData(
                    name=name,
                    partition_data=tuple(
                        PartitionProduceData(index=index, records=self.records(name, index)) for index in indexes
                    ),
                )
                for name in names
            ),
        )

    def header(self, version: int) -> bytearray:
        client_id = self.random.choice(("a client", "größe", "", None))
        return headers.write_request_header(ApiKey.PRODUCE, version, self.random.getrandbits(31), client_id)

    def maybe_damaged(self, request: bytes) -> bytes:
        """Its bytes, or others, or more, or fewer of them."""
        damage = self.random.randrange(12)
        if damage == 0:
            return mutate(request, self.random)
        return request + b"\0" if damage == 1 else request


def with_topic_ids(side: Side, request: ProduceRequest) -> ProduceRequest:
    """The same request to the same topics, which have ids of their own on each broker."""
    ids = {name: topic.topic_id for name, topic in side.broker.partitions.by_name.items()}
    return ProduceRequest(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=tuple(
            TopicProduceData(topic_id=ids.get(topic.name, ZERO_UUID), partition_data=topic.partition_data)
            for topic in request.topic_data
        ),
    )


def without_topic_ids(side: Side, response: bytes) -> bytes:
    for name, topic in side.broker.partitions.by_name.items():
        for written in (topic.topic_id.bytes, str(topic.topic_id).encode()):
            response = response.replace(written, name.encode())
    return response


@given(seed=st.integers(0, 2**64))
@settings(max_examples=6, deadline=None, database=None)
def test_both_paths_of_a_produce_request_give_the_same_responses_and_logs(seed: int) -> None:
    taken = asyncio.run(_compare(seed))
    assert taken > REQUESTS // 20, "the shorter way was hardly tried"


async def _compare(seed: int) -> int:
    """How often the shorter way was taken."""
    sender = Sender(seed)
    with (
        tempfile.TemporaryDirectory(prefix="kaspar-lane-") as one,
        tempfile.TemporaryDirectory(prefix="kaspar-lane-") as other,
        pytest.MonkeyPatch.context() as patch,
    ):
        # Partitions that are checked in threads are in a response as they are done: with one thread, in one order.
        patch.setattr(services, "BLOCKING_THREADS", 1)
        shorter, longer = Side(await start_broker(one)), Side(await start_broker(other))
        count = _count_calls(shorter.broker, patch)
        try:
            for _ in range(REQUESTS):
                version, request = sender.request()
                header = sender.header(version)
                if version < FIRST_WITH_TOPIC_ID:
                    same = sender.maybe_damaged(bytes(header) + codec.write(request, version))
                    sent = (same, same)
                else:
                    sent = (
                        bytes(header) + codec.write(with_topic_ids(shorter, request), version),
                        bytes(header) + codec.write(with_topic_ids(longer, request), version),
                    )
                response, *rest = await shorter.send(sent[0])
                with pytest.MonkeyPatch.context() as without:
                    without.setattr(pipeline, "read_one", lambda buffer, start, end: None)
                    expected, *expected_rest = await longer.send(sent[1])
                assert without_topic_ids(shorter, response) == without_topic_ids(longer, expected)
                assert rest == expected_rest
            assert shorter.state() == longer.state()
        finally:
            await shorter.broker.stop()
            await longer.broker.stop()
    return count()


def _count_calls(broker: Broker, patch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Of the shorter way that led to a response."""
    handler = broker.pipeline._produce
    handle_one = handler.handle_one
    responses = 0

    def counted(*arguments: object) -> object:
        nonlocal responses
        response = handle_one(*arguments)  # type: ignore[arg-type]
        responses += response is not None
        return response

    patch.setattr(handler, "handle_one", counted)
    return lambda: responses


@pytest.mark.parametrize("version", VERSIONS)
@given(seed=st.integers(0, 2**64))
@settings(max_examples=60, deadline=None, database=None)
def test_one_batch_is_read_as_the_general_readers_read_it(version: int, seed: int) -> None:
    sender = Sender(seed)
    _, request = sender.request()
    sent = sender.maybe_damaged(bytes(sender.header(version)) + codec.write(request, version))
    buffer = bytearray(b"before" + sent + b"behind")
    one = produce.read_one(buffer, 6, 6 + len(sent))
    if one is None:
        return
    header = headers.read_request_header(sent)
    general = produce.read_request(header.api_version, sent, header.body_position)
    ((topic, ((index, start, end),)),) = general.topics
    assert general.transactional_id is None
    assert one == (
        header.api_version,
        header.correlation_id,
        header.client_id,
        general.acks,
        topic,
        index,
        start + 6,
        end + 6,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_request_of_the_frequent_form_takes_the_shorter_way(version: int) -> None:
    batch = bytes(make_batch())
    for name in ("t", "x" * 126, "x" * 127, "x" * 249):
        data = (PartitionProduceData(index=5, records=batch),)
        topics = (TopicProduceData(name=name, topic_id=ZERO_UUID, partition_data=data),)
        message = ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics)
        sent = headers.write_request_header(ApiKey.PRODUCE, version, 9, "me") + codec.write(message, version)
        one = produce.read_one(sent, 0, len(sent))
        assert one is not None
        topic = ZERO_UUID if version >= FIRST_WITH_TOPIC_ID else name
        assert one[:6] == (version, 9, "me", -1, topic, 5)
        assert sent[one[6] : one[7]] == batch


@pytest.mark.parametrize(("start", "end"), [(-1, 10), (0, 11)])
def test_request_must_lie_within_the_buffer(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="is outside a buffer of"):
        produce.read_one(bytearray(10), start, end)
