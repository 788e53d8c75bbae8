"""Produce: what is taken, what is refused, and with which code."""

from dataclasses import replace

from tests.compat.responses.api import Api
from tests.compat.responses.batches import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    TIMESTAMP,
    TRANSACTIONAL,
    ZSTD,
    Batch,
    Record,
    message_set,
    numbered,
)
from tests.compat.responses.placeholders import Joined, Learnt
from tests.compat.responses.scenario import Ask, Eventually, NewTopic, Scenario, Step
from tests.compat.responses.scenarios.requests import (
    UNKNOWN_ID,
    ZERO_ID,
    fetch,
    known_topic,
    list_offsets,
    new_producer,
    produce,
    produce_to,
    unknown_topic,
)

PRODUCE = Api.PRODUCE
THREE = Batch(records=numbered(3))
SEE_ALL = Ask(Api.FETCH, fetch(), version=18)
FAR_FUTURE = 95_617_584_000_000


def _one(name: str, records: object, *, topic: NewTopic | None = None, acks: int = -1, see: bool = True) -> Scenario:
    """One partition is sent these records; then what is in the log is compared too."""
    steps: list[Step] = [Ask(PRODUCE, produce(records, acks=acks))]
    if see:
        steps.append(SEE_ALL)
    return Scenario(name, PRODUCE, steps, [topic or NewTopic()], shared=True)


def _idempotent(sequence: int, *, epoch: int = 0, count: int = 1, producer: object = None) -> Ask:
    batch = Batch(
        records=numbered(count, start=sequence),
        producer_id=Learnt("p") if producer is None else producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return Ask(PRODUCE, produce(batch))


_TAKEN = [
    _one("one record", Batch()),
    _one("one record with acks 1", Batch(), acks=1),
    _one("three records", THREE),
    _one("gzip", Batch(records=numbered(3), codec=GZIP)),
    _one("lz4", Batch(records=numbered(3), codec=LZ4)),
    _one("zstd", Batch(records=numbered(3), codec=ZSTD)),
    _one(
        "headers and nulls", Batch(records=(Record(None, None, headers=(("h", b"1"), ("h", None))), Record(b"", b"")))
    ),
    _one("a base offset that is not zero", Batch(base_offset=1234)),
    _one("a leader epoch in the batch", Batch(leader_epoch=77)),
    _one("a record with attributes", Batch(records=(Record(attributes=5),))),
    _one("timestamps of minus one", Batch(timestamp=-1)),
    _one("timestamps below minus one", Batch(timestamp=-5)),
    _one("a max timestamp that is too low", replace(THREE, max_timestamp=TIMESTAMP)),
    _one("a max timestamp that is too high", replace(THREE, max_timestamp=TIMESTAMP + 50_000)),
    _one("log append time", THREE, topic=NewTopic(configs={"message.timestamp.type": "LogAppendTime"})),
    _one(
        "log append time of a compressed batch",
        Batch(records=numbered(2), codec=LZ4),
        topic=NewTopic(configs={"message.timestamp.type": "LogAppendTime"}),
    ),
    Scenario(
        "compressed again as the topic says",
        PRODUCE,
        [Ask(PRODUCE, produce(THREE)), Ask(PRODUCE, produce(Batch(records=numbered(3), codec=LZ4))), SEE_ALL],
        topics=[NewTopic(configs={"compression.type": "gzip"})],
        masks=["Fetch.responses.*.partitions.*.records.*.size"],
    ),
    Scenario(
        "inflated as the topic says",
        PRODUCE,
        [Ask(PRODUCE, produce(Batch(records=numbered(3), codec=LZ4))), SEE_ALL],
        topics=[NewTopic(configs={"compression.type": "uncompressed"})],
    ),
    Scenario(
        "one batch after the other",
        PRODUCE,
        [Ask(PRODUCE, produce(THREE)), Ask(PRODUCE, produce(Batch())), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "two topics with two partitions each",
        PRODUCE,
        [
            Ask(
                PRODUCE,
                produce_to((known_topic("a"), {0: Batch(), 1: THREE}), (known_topic("b"), {1: Batch(), 0: THREE})),
            ),
        ],
        topics=[NewTopic("a", partitions=2), NewTopic("b", partitions=2)],
        unordered=["Produce.responses", "Produce.responses.*.partition_responses"],
    ),
    Scenario(
        "acks zero has no response",
        PRODUCE,
        [
            Ask(PRODUCE, produce(THREE, acks=0), has_response=False),
            Eventually(Api.LIST_OFFSETS, list_offsets(-1), "topics.0.partitions.0.offset", 3),
            SEE_ALL,
        ],
        topics=[NewTopic()],
    ),
    Scenario("no topics", PRODUCE, [Ask(PRODUCE, produce_to())]),
    Scenario("no topics with acks zero", PRODUCE, [Ask(PRODUCE, produce_to(acks=0), has_response=False)]),
    Scenario("a topic without partitions", PRODUCE, [Ask(PRODUCE, produce_to((known_topic(), {})))], [NewTopic()]),
    Scenario("a timeout of zero", PRODUCE, [Ask(PRODUCE, produce(Batch(), timeout=0))], [NewTopic()]),
    Scenario("a negative timeout", PRODUCE, [Ask(PRODUCE, produce(Batch(), timeout=-1))], [NewTopic()]),
]

_REFUSED = [
    _one("acks two", Batch(), acks=2),
    _one("acks minus two", Batch(), acks=-2),
    Scenario(
        "null records",
        PRODUCE,
        [Ask(PRODUCE, produce(None), patience=1.0), SEE_ALL],
        [NewTopic()],
        versions=[PRODUCE.first, 9, PRODUCE.last],
    ),
    _one("empty records", b""),
    _one("a wrong checksum", Batch(crc_flip=1)),
    _one("a cut batch", Batch(cut=3)),
    _one("less than a batch header", Batch(cut=40)),
    _one("less than a size", b"\0" * 8),
    _one("bytes that are no batch", b"\x55" * 90),
    _one("a size below the header's", Batch(size_change=-40)),
    _one("a size beyond the end", Batch(size_change=40)),
    _one("a negative size", Batch(size_change=-100_000)),
    _one("two batches", Joined((Batch(), Batch()))),
    _one("a batch and a cut one", Joined((Batch(), Batch(cut=5)))),
    _one("a batch and a few bytes", Joined((Batch(), b"\0\0\0"))),
    _one("magic 0", message_set(0)),
    _one("magic 1", message_set(1)),
    _one("magic 3", Batch(magic=3)),
    _one("magic minus one", Batch(magic=-1)),
    _one("more records counted than there are", Batch(count=2, last_offset_delta=1)),
    _one("fewer records counted than there are", replace(THREE, count=2, last_offset_delta=1)),
    _one("a count that the last offset delta denies", replace(THREE, last_offset_delta=7)),
    _one("a negative count", Batch(count=-1)),
    _one("no records", Batch(records=(), last_offset_delta=0)),
    _one("no records and a last offset delta of minus one", Batch(records=())),
    _one("offset deltas with a gap", Batch(records=(Record(), Record(offset_delta=5)))),
    _one("offset deltas with a gap in gzip", Batch(records=(Record(), Record(offset_delta=5)), codec=GZIP)),
    _one("offset deltas that begin at one", Batch(records=(Record(offset_delta=1),))),
    _one("bytes after the last record", Batch(payload=Record().encode(0) + b"\0\0")),
    _one("a record that is cut", Batch(payload=Record().encode(0)[:-2])),
    _one("a record of negative size", Batch(payload=b"\x03" + Record().encode(0))),
    _one("gzip that is no gzip", Batch(codec=GZIP, payload=b"this is no gzip")),
    _one("lz4 that is no lz4", Batch(codec=LZ4, payload=b"this is no lz4 frame")),
    _one("zstd that is no zstd", Batch(codec=ZSTD, payload=b"this is no zstd frame")),
    _one("snappy that is no snappy", Batch(attributes=2, payload=b"this is no snappy")),
    _one("codec 5", Batch(attributes=5)),
    _one("codec 7", Batch(attributes=7)),
    _one("a control batch", Batch(attributes=CONTROL)),
    _one("the log append time flag", Batch(attributes=LOG_APPEND_TIME)),
    _one("the delete horizon flag", Batch(attributes=DELETE_HORIZON)),
    _one("a transactional batch without a producer", Batch(attributes=TRANSACTIONAL)),
    _one("a producer id without an epoch", Batch(producer_id=9_000_001, base_sequence=0)),
    _one("a producer id without a sequence", Batch(producer_id=9_000_002, producer_epoch=0)),
    _one("timestamps of the far future", Batch(timestamp=FAR_FUTURE)),
    _one(
        "timestamps of the far future in gzip",
        Batch(records=numbered(3), timestamp=FAR_FUTURE, codec=GZIP),
    ),
    _one(
        "timestamps that are too old for the topic",
        THREE,
        topic=NewTopic(configs={"message.timestamp.before.max.ms": "1000"}),
    ),
    _one(
        "a keyless record on a compacted topic",
        Batch(records=(Record(), Record(None), Record(None))),
        topic=NewTopic(configs={"cleanup.policy": "compact"}),
    ),
    _one(
        "a batch above max.message.bytes",
        Batch(records=numbered(1, size=2000)),
        topic=NewTopic(configs={"max.message.bytes": "1000"}),
    ),
    _one(
        "a batch above segment.bytes",
        Batch(records=numbered(1, size=1_100_000)),
        topic=NewTopic(configs={"segment.bytes": "1048576", "max.message.bytes": "2000000"}),
    ),
    _one("too few in-sync replicas", Batch(), topic=NewTopic(configs={"min.insync.replicas": "2"})),
    _one("too few in-sync replicas and acks 1", Batch(), topic=NewTopic(configs={"min.insync.replicas": "2"}), acks=1),
    Scenario("an unknown topic", PRODUCE, [Ask(PRODUCE, produce_to((unknown_topic(), {0: Batch()})))]),
    Scenario(
        "a topic name that may not be", PRODUCE, [Ask(PRODUCE, produce_to((("a b/c", UNKNOWN_ID), {0: Batch()})))]
    ),
    Scenario("an empty topic name or the zero id", PRODUCE, [Ask(PRODUCE, produce_to((("", ZERO_ID), {0: Batch()})))]),
    Scenario("an unknown partition", PRODUCE, [Ask(PRODUCE, produce(Batch(), partition=7))], [NewTopic()]),
    Scenario("a negative partition", PRODUCE, [Ask(PRODUCE, produce(Batch(), partition=-1))], [NewTopic()]),
    Scenario(
        "one bad partition does not fail its neighbours",
        PRODUCE,
        [
            Ask(
                PRODUCE,
                produce_to(
                    (known_topic(), {0: Batch(), 1: Batch(crc_flip=1), 5: Batch(), 2: THREE}),
                    (unknown_topic(), {0: Batch()}),
                ),
            ),
            Ask(Api.FETCH, fetch(partition=2), version=18),
        ],
        topics=[NewTopic(partitions=3)],
        unordered=["Produce.responses", "Produce.responses.*.partition_responses"],
    ),
    Scenario(
        "the same topic twice",
        PRODUCE,
        [Ask(PRODUCE, produce_to((known_topic(), {0: Batch()}), (known_topic(), {0: THREE}))), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "acks zero with a wrong batch closes the connection",
        PRODUCE,
        [Ask(PRODUCE, produce(Batch(crc_flip=1), acks=0), has_response=False), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "acks zero to an unknown topic",
        PRODUCE,
        [Ask(PRODUCE, produce_to((unknown_topic(), {0: Batch()}), acks=0), has_response=False)],
    ),
    Scenario("a body that is cut", PRODUCE, [Ask(PRODUCE, produce(Batch()), cut=20)], [NewTopic()]),
    Scenario("bytes after the body", PRODUCE, [Ask(PRODUCE, produce(Batch()), extra=b"\0\1\2")], [NewTopic()]),
]

_OF_A_TRANSACTION = Batch(attributes=TRANSACTIONAL, producer_id=8_000_000, producer_epoch=0, base_sequence=0)
_PRODUCERS = [
    Scenario(
        "an idempotent producer",
        PRODUCE,
        [new_producer(), _idempotent(0, count=3), _idempotent(3), _idempotent(4, count=2), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "a duplicate gets its first offset",
        PRODUCE,
        [new_producer(), *[_idempotent(n) for n in range(7)], _idempotent(6), _idempotent(2), _idempotent(1), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "a part of a batch that is known",
        PRODUCE,
        [new_producer(), _idempotent(0, count=4), _idempotent(0, count=2), _idempotent(2, count=2), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "a sequence with a gap",
        PRODUCE,
        [new_producer(), _idempotent(0), _idempotent(2), _idempotent(1), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "a first sequence that is not zero",
        PRODUCE,
        [new_producer(), _idempotent(5), _idempotent(6), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "an older epoch",
        PRODUCE,
        [new_producer(), _idempotent(0, epoch=3), _idempotent(1, epoch=2), _idempotent(1, epoch=3), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "a newer epoch begins at zero",
        PRODUCE,
        [new_producer(), _idempotent(0), _idempotent(1, epoch=1), _idempotent(0, epoch=1), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "a producer id that nobody gave out",
        PRODUCE,
        [_idempotent(0, producer=7_000_000), _idempotent(1, producer=7_000_000), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "sequences wrap around",
        PRODUCE,
        [new_producer(), _idempotent(2**31 - 2, count=1), _idempotent(2**31 - 1, count=1), _idempotent(0), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "a transactional id without a transactional batch",
        PRODUCE,
        [Ask(PRODUCE, produce(Batch(), transactional_id="nobody")), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "a transactional batch with acks 1",
        PRODUCE,
        [Ask(PRODUCE, produce(_OF_A_TRANSACTION, transactional_id="nobody", acks=1)), SEE_ALL],
        topics=[NewTopic()],
    ),
    Scenario(
        "a transactional batch that would be compressed",
        PRODUCE,
        [Ask(PRODUCE, produce(_OF_A_TRANSACTION, transactional_id="nobody")), SEE_ALL],
        topics=[NewTopic(configs={"compression.type": "gzip"})],
    ),
]

SCENARIOS = [*_TAKEN, *_REFUSED, *_PRODUCERS]
