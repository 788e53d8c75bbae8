"""InitProducerId and DescribeProducers."""

from tests.compat.responses.api import Api
from tests.compat.responses.batches import Batch, numbered
from tests.compat.responses.placeholders import Learnt, Topic
from tests.compat.responses.scenario import Ask, NewTopic, Scenario
from tests.compat.responses.scenarios.requests import Body, new_producer, produce

INIT, DESCRIBE = Api.INIT_PRODUCER_ID, Api.DESCRIBE_PRODUCERS


def _init(transactional_id: str | None = None, timeout: int = 60_000, **more: object) -> Body:
    return {"transactional_id": transactional_id, "transaction_timeout": timeout, **more}


_INIT = [
    Scenario("an idempotent producer", INIT, [Ask(INIT, _init()), Ask(INIT, _init())]),
    Scenario("a timeout of zero", INIT, [Ask(INIT, _init(timeout=0))]),
    Scenario("a negative timeout", INIT, [Ask(INIT, _init(timeout=-1))]),
    Scenario("an empty transactional id", INIT, [Ask(INIT, _init(""))]),
    Scenario("a producer id and epoch of its own", INIT, [Ask(INIT, _init(producer_id=5, producer_epoch=3))]),
    Scenario("a producer id without an epoch", INIT, [Ask(INIT, _init(producer_id=5))]),
    Scenario("an epoch without a producer id", INIT, [Ask(INIT, _init(producer_epoch=5))]),
    Scenario("a body that is cut", INIT, [Ask(INIT, _init(), cut=2)]),
]


def _sent(sequence: int, *, count: int = 1, epoch: int = 0, producer: str = "p") -> Ask:
    batch = Batch(
        records=numbered(count, start=sequence),
        producer_id=Learnt(producer),
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return Ask(Api.PRODUCE, produce(batch), version=13)


def _asked(*topics: tuple[object, list[int]]) -> Ask:
    return Ask(DESCRIBE, {"topics": [{"name": name, "partition_indexes": indexes} for name, indexes in topics]})


_T = Topic("t")
_DESCRIBE = [
    Scenario("no producers", DESCRIBE, [_asked((_T, [0]))], [NewTopic()]),
    Scenario("one producer", DESCRIBE, [new_producer(), _sent(0, count=3), _sent(3), _asked((_T, [0]))], [NewTopic()]),
    Scenario(
        "two producers",
        DESCRIBE,
        [new_producer("p"), new_producer("q"), _sent(0, producer="q"), _sent(0, epoch=2), _asked((_T, [0]))],
        [NewTopic()],
    ),
    Scenario(
        "a batch without a producer",
        DESCRIBE,
        [Ask(Api.PRODUCE, produce(Batch()), version=13), _asked((_T, [0]))],
        [NewTopic()],
    ),
    Scenario("an unknown topic", DESCRIBE, [_asked((Topic("missing"), [0]))]),
    Scenario(
        "an unknown partition",
        DESCRIBE,
        [_asked((_T, [0, 6, -1]))],
        [NewTopic()],
        unordered=["DescribeProducers.topics.*.partitions"],
    ),
    Scenario("a topic name that may not be", DESCRIBE, [_asked(("a b", [0]))]),
    Scenario("no partitions", DESCRIBE, [_asked((_T, []))], [NewTopic()]),
    Scenario("no topics", DESCRIBE, [_asked()]),
    Scenario("the same partition twice", DESCRIBE, [_asked((_T, [0, 0]))], [NewTopic()]),
    Scenario("the same topic twice", DESCRIBE, [_asked((_T, [0]), (_T, [0]))], [NewTopic()]),
]

SCENARIOS = [*_INIT, *_DESCRIBE]
