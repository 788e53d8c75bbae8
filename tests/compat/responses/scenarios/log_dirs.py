"""Replicas that move between the log directories of a broker: those of one directory, and those of two."""

from tests.compat.responses.api import Api
from tests.compat.responses.batches import Batch, numbered
from tests.compat.responses.placeholders import Learnt, Topic
from tests.compat.responses.scenario import Ask, Eventually, NewTopic, Scenario, Step
from tests.compat.responses.scenarios.requests import Body, produce

MOVE, DIRS = Api.ALTER_REPLICA_LOG_DIRS, Api.DESCRIBE_LOG_DIRS
FIRST, SECOND = Learnt("first"), Learnt("second")
TOO_LONG = "x" * 214
"""A topic may have this name, but not the folder of its copy."""

_A = Topic("a")


def _to(path: object, *topics: tuple[object, list[int]]) -> Body:
    return {"path": path, "topics": [{"name": name, "partitions": numbers} for name, numbers in topics]}


def _move(*dirs: Body) -> Body:
    return {"dirs": list(dirs)}


def _asked(topic: Topic, *partitions: int) -> Body:
    return {"topics": [{"topic": topic, "partitions": list(partitions)}]}


_LOOK = Ask(DIRS, {"topics": []}, version=4, learn={"first": "results.0.log_dir", "second": "results.1.log_dir"})

SCENARIOS = [
    Scenario(name, MOVE, [Ask(MOVE, body)], [NewTopic("a", partitions=2)], given=[_LOOK], shared=True)
    for name, body in {
        "to where it is": _move(_to(FIRST, (_A, [0, 1]))),
        "to an unknown directory": _move(_to("/nowhere", (_A, [0]))),
        "to a relative directory": _move(_to("nowhere", (_A, [0]))),
        "to no directory": _move(_to("", (_A, [0]))),
        "no directories": _move(),
        "no topics": _move(_to(FIRST)),
        "no partitions": _move(_to(FIRST, (_A, []))),
        "an unknown partition": _move(_to(FIRST, (_A, [0, 7, -1]))),
        "an unknown topic": _move(_to(FIRST, (Topic("missing"), [0]), (_A, [0]))),
        "a topic name that may not be": _move(_to(FIRST, ("a b", [0]))),
        "a name that is too long": _move(_to(FIRST, (TOO_LONG, [0]), ("x" * 213, [0]))),
        "a name that is too long, to an unknown directory": _move(_to("/nowhere", (TOO_LONG, [0]))),
        "the same partition twice": _move(_to("/nowhere", (_A, [0])), _to(FIRST, (_A, [0]))),
        "the same partition twice, the other way round": _move(_to(FIRST, (_A, [0])), _to("/nowhere", (_A, [0]))),
    }.items()
]
"""For brokers with any number of directories."""

_ALL = _asked(_A, 0, 1, 2)
_FILLED = [
    Ask(Api.PRODUCE, produce(Batch(records=numbered(5)), topic="a", partition=number), version=13)
    for number in (0, 1, 2)
]
_IN_THE_FIRST: list[Step] = [
    _LOOK,
    *_FILLED,
    Ask(MOVE, _move(_to(FIRST, (_A, [0, 1, 2]))), version=2),
    Eventually(DIRS, _ALL, "results.1.topics", []),
]
_THREE = [NewTopic("a", partitions=3)]

MOVES = [
    Scenario(
        "to another directory",
        MOVE,
        [Ask(MOVE, _move(_to(SECOND, (_A, [0, 1, 2])))), Eventually(DIRS, _ALL, "results.0.topics", [], compare=True)],
        _THREE,
        given=_IN_THE_FIRST,
    ),
    Scenario(
        "some of them",
        MOVE,
        [
            Ask(MOVE, _move(_to(SECOND, (_A, [1])), _to(FIRST, (_A, [2])))),
            Eventually(DIRS, _asked(_A, 1), "results.0.topics", []),
            Ask(DIRS, _ALL, version=4),
        ],
        _THREE,
        given=_IN_THE_FIRST,
    ),
    Scenario(
        "a directory for a topic that is created later",
        MOVE,
        [
            Ask(MOVE, _move(_to(SECOND, (Topic("later"), [0, 1])))),
            Ask(
                Api.CREATE_TOPICS,
                {
                    "topics": [{"name": Topic("later"), "num_partitions": 2, "replication_factor": 1, "configs": []}],
                    "timeout": 10_000,
                },
                version=4,
            ),
            Eventually(DIRS, _asked(Topic("later"), 0, 1), "results.1.topics.0.partitions.length", 2, compare=True),
        ],
        given=[_LOOK],
    ),
    # Last, and once: in Apache Kafka the cancelled copy races with its thread, which logs NullPointerExceptions
    # (ReplicaAlterLogDirsThread) and seldom leaves the broker unable to move anything.
    Scenario(
        "to and fro",
        MOVE,
        [
            Ask(MOVE, _move(_to(SECOND, (_A, [0, 1, 2])))),
            Ask(MOVE, _move(_to(FIRST, (_A, [0, 1, 2])))),
            Eventually(DIRS, _ALL, "results.1.topics", [], compare=True),
        ],
        _THREE,
        given=_IN_THE_FIRST,
        versions=[MOVE.last],
    ),
]
"""For brokers with two directories."""
