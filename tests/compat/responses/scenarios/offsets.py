"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from tests.compat.responses.api import Api
from tests.compat.responses.batches import LZ4, TIMESTAMP, Batch, Record, later, numbered
from tests.compat.responses.placeholders import Topic
from tests.compat.responses.scenario import Ask, NewTopic, Scenario, Step
from tests.compat.responses.scenarios.requests import Body, fetch, list_offsets, produce

LIST, EPOCH, DELETE = Api.LIST_OFFSETS, Api.OFFSET_FOR_LEADER_EPOCH, Api.DELETE_RECORDS
SPECS = {
    -1: "latest",
    -2: "earliest",
    -3: "the max timestamp",
    -4: "earliest local",
    -5: "latest tiered",
    -6: "earliest pending upload",
    -7: "a spec that does not exist",
    -100: "a spec far below",
}
# Offsets 0-2 a second apart; 3-5 after ten seconds, compressed; 6 back in time; 7 and 8 at the same, highest, time.
BATCHES = (
    Batch(records=numbered(3)),
    later(Batch(records=numbered(3, start=3), codec=LZ4), 10),
    later(Batch(records=numbered(1, start=6)), 5),
    later(Batch(records=(Record(b"x"), Record(b"y"))), 20),
)
FILLED: list[Step] = [Ask(Api.PRODUCE, produce(batch), version=13) for batch in BATCHES]
TIMES = {
    "before the first": TIMESTAMP - 1,
    "of the first record": TIMESTAMP,
    "inside the first batch": TIMESTAMP + 1000,
    "between two batches": TIMESTAMP + 2001,
    "inside the compressed batch": TIMESTAMP + 11_000,
    "that only a later batch has": TIMESTAMP + 12_001,
    "of the last records": TIMESTAMP + 20_000,
    "after the last": TIMESTAMP + 20_001,
    "of zero": 0,
    "as high as can be": 2**63 - 1,
}


def _lists(name: str, body: Body, *, filled: bool = True, topic: NewTopic | None = None) -> Scenario:
    given = FILLED if filled else []
    return Scenario(name, LIST, [Ask(LIST, body)], [topic or NewTopic()], given=given, shared=True)


_APPEND_TIME = NewTopic(configs={"message.timestamp.type": "LogAppendTime"})
_LIST = [
    *[_lists(f"{spec}", list_offsets(timestamp)) for timestamp, spec in SPECS.items()],
    *[
        _lists(f"{spec} of an empty partition", list_offsets(timestamp), filled=False)
        for timestamp, spec in SPECS.items()
    ],
    *[_lists(f"a time {moment}", list_offsets(timestamp)) for moment, timestamp in TIMES.items()],
    _lists("a time in an empty partition", list_offsets(TIMESTAMP), filled=False),
    Scenario(  # one batch: two may be appended in one millisecond, or not
        "the max timestamp with log append time",
        LIST,
        [Ask(LIST, list_offsets(-3))],
        [_APPEND_TIME],
        given=FILLED[:1],
        shared=True,
    ),
    _lists("a time with log append time", list_offsets(TIMESTAMP), topic=_APPEND_TIME),
    Scenario(
        "after records were deleted",
        LIST,
        [
            *FILLED,
            Ask(
                DELETE,
                {
                    "timeout": 5000,
                    "topics": [{"name": Topic("t"), "partitions": [{"partition_index": 0, "offset": 4}]}],
                },
                version=2,
            ),
            *[Ask(LIST, list_offsets(timestamp)) for timestamp in (-1, -2, -3, -4, TIMESTAMP, TIMESTAMP + 11_000)],
        ],
        topics=[NewTopic()],
    ),
    _lists("read committed", {**list_offsets(-1), "isolation_level": 1}),
    _lists("read committed at a time", {**list_offsets(TIMESTAMP + 20_000), "isolation_level": 1}),
    _lists("an isolation level that does not exist", {**list_offsets(-1), "isolation_level": 5}),
    _lists("the current leader epoch", list_offsets(-1, current_leader_epoch=0)),
    _lists("a leader epoch of the future", list_offsets(-1, current_leader_epoch=4)),
    _lists("a leader epoch of the future at a time", list_offsets(TIMESTAMP, current_leader_epoch=4)),
    _lists("a leader epoch below minus one", list_offsets(-1, current_leader_epoch=-3)),
    _lists("as the debugging consumer", {**list_offsets(-1), "replica_id": -2}),
    _lists("as a broker", {**list_offsets(-1), "replica_id": 1}),
    _lists("as a broker at a time", {**list_offsets(TIMESTAMP), "replica_id": 1}),
    _lists("an unknown partition", list_offsets(-1, partition=9)),
    _lists("a negative partition", list_offsets(-1, partition=-1)),
    Scenario("an unknown topic", LIST, [Ask(LIST, list_offsets(-1, topic=Topic("missing")))]),
    Scenario("an unknown topic at a time", LIST, [Ask(LIST, list_offsets(TIMESTAMP, topic=Topic("missing")))]),
    Scenario("a topic name that may not be", LIST, [Ask(LIST, list_offsets(-1, topic="a b"))]),
    Scenario("no topics", LIST, [Ask(LIST, {"replica_id": -1, "topics": []})]),
    Scenario(
        "the same partition twice",
        LIST,
        [
            *FILLED,
            Ask(
                LIST,
                {
                    "replica_id": -1,
                    "topics": [
                        {
                            "name": Topic("t"),
                            "partitions": [
                                {"partition_index": 0, "timestamp": -1},
                                {"partition_index": 0, "timestamp": -2},
                            ],
                        }
                    ],
                },
            ),
        ],
        topics=[NewTopic()],
    ),
    Scenario(
        "the same topic twice",
        LIST,
        [*FILLED, Ask(LIST, {"replica_id": -1, "topics": [list_offsets(spec)["topics"][0] for spec in (-1, -2)]})],
        topics=[NewTopic()],
    ),
    Scenario(
        "one bad partition does not fail its neighbours",
        LIST,
        [
            *FILLED,
            Ask(
                LIST,
                {
                    "replica_id": -1,
                    "topics": [
                        {"name": Topic("missing"), "partitions": [{"partition_index": 0, "timestamp": -1}]},
                        {
                            "name": Topic("t"),
                            "partitions": [
                                {"partition_index": 0, "timestamp": -1},
                                {"partition_index": 4, "timestamp": -1},
                                {"partition_index": 1, "timestamp": -2},
                            ],
                        },
                    ],
                },
            ),
        ],
        topics=[NewTopic(partitions=2)],
        unordered=["ListOffsets.topics", "ListOffsets.topics.*.partitions"],
    ),
    Scenario("a body that is cut", LIST, [Ask(LIST, list_offsets(-1), cut=6)], topics=[NewTopic()]),
]


def _epochs(epoch: int, *, partition: int = 0, topic: object = None, current: int = -1, **more: object) -> Body:
    wanted = {"partition": partition, "leader_epoch": epoch, "current_leader_epoch": current}
    return {"replica_id": -1, "topics": [{"topic": topic or Topic("t"), "partitions": [wanted]}], **more}


def _epoch(name: str, body: Body, *, filled: bool = True) -> Scenario:
    return Scenario(name, EPOCH, [Ask(EPOCH, body)], [NewTopic()], given=FILLED if filled else [], shared=True)


_EPOCH = [
    _epoch("the epoch of the records", _epochs(0)),
    _epoch("the epoch of an empty partition", _epochs(0), filled=False),
    _epoch("an epoch of the future", _epochs(5)),
    _epoch("no epoch", _epochs(-1)),
    _epoch("an epoch below minus one", _epochs(-2)),
    _epoch("the current epoch given", _epochs(0, current=0)),
    _epoch("a current epoch of the future", _epochs(0, current=3)),
    _epoch("a current epoch below minus one", _epochs(0, current=-3)),
    _epoch("as the debugging consumer", _epochs(0, replica_id=-2)),
    _epoch("as a broker", _epochs(0, replica_id=1)),
    _epoch("an unknown partition", _epochs(0, partition=3)),
    _epoch("a negative partition", _epochs(0, partition=-3)),
    _epoch("an unknown topic", _epochs(0, topic=Topic("missing"))),
    _epoch("no topics", {"topics": []}),
    Scenario(
        "the same partition twice",
        EPOCH,
        [
            *FILLED,
            Ask(
                EPOCH,
                {
                    "replica_id": -1,
                    "topics": [
                        {
                            "topic": Topic("t"),
                            "partitions": [{"partition": 0, "leader_epoch": 0}, {"partition": 0, "leader_epoch": 1}],
                        }
                    ],
                },
            ),
        ],
        topics=[NewTopic()],
    ),
    Scenario("a body that is cut", EPOCH, [Ask(EPOCH, _epochs(0), cut=6)], topics=[NewTopic()]),
]


def _deleted(*offsets: int, partition: int = 0, topic: object = None, **more: object) -> Body:
    wanted = [{"partition_index": partition, "offset": offset} for offset in offsets]
    return {"timeout": 5_000, "topics": [{"name": topic or Topic("t"), "partitions": wanted}], **more}


_SEEN: list[Step] = [
    Ask(LIST, list_offsets(-2), version=11),
    Ask(LIST, list_offsets(-1), version=11),
    Ask(Api.FETCH, fetch(4), version=18),
]


def _delete(name: str, *bodies: Body, topic: NewTopic | None = None, filled: bool = True) -> Scenario:
    before = FILLED if filled else []
    return Scenario(name, DELETE, [*before, *[Ask(DELETE, body) for body in bodies], *_SEEN], [topic or NewTopic()])


_DELETE = [
    _delete("up to an offset inside a batch", _deleted(4)),
    _delete("up to the first offset of a batch", _deleted(3)),
    _delete("up to the end", _deleted(9)),
    _delete("up to the high watermark", _deleted(-1)),
    _delete("beyond the end", _deleted(10)),
    _delete("a negative offset", _deleted(-2)),
    _delete("zero", _deleted(0)),
    _delete("backwards", _deleted(5), _deleted(2)),
    _delete("twice", _deleted(5), _deleted(5)),
    _delete("up to the high watermark of an empty partition", _deleted(-1), filled=False),
    _delete("a compacted topic", _deleted(4), topic=NewTopic(configs={"cleanup.policy": "compact"})),
    _delete("a compacted and deleted topic", _deleted(4), topic=NewTopic(configs={"cleanup.policy": "compact,delete"})),
    _delete("an unknown partition", _deleted(1, partition=5)),
    _delete("a negative partition", _deleted(1, partition=-5)),
    _delete("an unknown topic", _deleted(1, topic=Topic("missing"))),
    _delete("a topic name that may not be", _deleted(1, topic="a b")),
    _delete("no topics", {"timeout": 5000, "topics": []}),
    _delete("the same partition twice", _deleted(2, 3)),
    _delete(
        "the same topic twice",
        {"timeout": 5_000, "topics": [*_deleted(3)["topics"], *_deleted(2)["topics"]]},
    ),
    _delete("a timeout of zero", {**_deleted(3), "timeout": 0}),
    Scenario("a body that is cut", DELETE, [Ask(DELETE, _deleted(1), cut=6)], topics=[NewTopic()]),
]

SCENARIOS = [*_LIST, *_EPOCH, *_DELETE]
