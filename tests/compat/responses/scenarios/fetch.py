"""Fetch: positions, limits, epochs, incremental sessions, and what is refused."""

from tests.compat.responses.api import Api
from tests.compat.responses.batches import LZ4, Batch, later, numbered
from tests.compat.responses.placeholders import Learnt, Topic, TopicId
from tests.compat.responses.scenario import Ask, Eventually, NewTopic, Scenario, Step
from tests.compat.responses.scenarios.requests import (
    UNKNOWN_ID,
    ZERO_ID,
    Body,
    fetch,
    fetch_to,
    from_offset,
    known_topic,
    list_offsets,
    produce,
    unknown_topic,
)

FETCH = Api.FETCH
ALL = range(FETCH.first, FETCH.last + 1)
WITH_SESSIONS = range(7, FETCH.last + 1)
WITH_IDS = range(13, FETCH.last + 1)
THREE = Batch(records=numbered(3))


def _fill(*, partition: int = 0, topic: str = "t") -> list[Step]:
    """Three batches with the offsets 0-2, 3-5 and 6."""
    batches = (THREE, Batch(records=numbered(3, start=3), codec=LZ4), Batch(records=numbered(1, start=6)))
    return [
        Ask(Api.PRODUCE, produce(later(batch, 10 * number), partition=partition, topic=topic), version=13)
        for number, batch in enumerate(batches)
    ]


def _one(name: str, body: Body, *, versions: range = ALL, before: tuple[Step, ...] = ()) -> Scenario:
    return Scenario(name, FETCH, [Ask(FETCH, body)], [NewTopic()], versions, given=[*_fill(), *before], shared=True)


_POSITIONS = [
    _one("from the start", fetch()),
    _one("from inside a batch", fetch(1)),
    _one("from inside a compressed batch", fetch(4)),
    _one("from the last batch", fetch(6)),
    _one("at the end", fetch(7)),
    _one("beyond the end", fetch(8)),
    _one("a negative offset", fetch(-1)),
    _one("read committed", fetch(isolation_level=1)),
    _one("read committed at the end", fetch(7, isolation_level=1)),
    _one("an isolation level that does not exist", fetch(isolation_level=2)),
    _one("a rack", fetch(rack_id="r1")),
    _one("a cluster id that is not this cluster's", fetch(cluster_id="not-this-one")),
    _one("as the debugging consumer", fetch(replica_id=-2, replica_state={"replica_id": -2})),
    _one("as the broker itself", fetch(replica_id=1, replica_state={"replica_id": 1, "replica_epoch": -1})),
    _one("as a broker that is no replica", fetch(replica_id=9, replica_state={"replica_id": 9, "replica_epoch": -1})),
    _one(
        "as a broker that is no replica and knows the epoch",
        fetch(at={"current_leader_epoch": 0}, replica_id=9, replica_state={"replica_id": 9, "replica_epoch": -1}),
    ),
    _one(
        "below the log start",
        fetch(1),
        before=(
            Ask(
                Api.DELETE_RECORDS,
                {
                    "timeout": 5000,
                    "topics": [{"name": Topic("t"), "partitions": [{"partition_index": 0, "offset": 4}]}],
                },
                version=2,
            ),
        ),
    ),
    Scenario("an empty partition", FETCH, [Ask(FETCH, fetch())], topics=[NewTopic()]),
]

_LIMITS = [
    _one("a partition limit of one byte gives one batch", fetch(at={"partition_max_bytes": 1})),
    _one("a partition limit of zero", fetch(at={"partition_max_bytes": 0})),
    _one("a negative partition limit", fetch(at={"partition_max_bytes": -1})),
    _one("a partition limit in the middle of the second batch", fetch(at={"partition_max_bytes": 130})),
    _one("a request limit of one byte", fetch(max_bytes=1)),
    _one("a request limit of zero", fetch(max_bytes=0)),
    _one("a negative request limit", fetch(max_bytes=-1)),
    _one("a request limit in the middle of the second batch", fetch(max_bytes=130)),
    _one("negative min bytes", fetch(min_bytes=-1)),
    _one("more min bytes than there are and no wait", fetch(min_bytes=100_000)),
    _one("more min bytes than there are and a short wait", fetch(7, min_bytes=1, max_wait=20)),
    _one("a negative wait", fetch(7, min_bytes=1, max_wait=-1)),
    Scenario(
        "a request limit over two partitions",
        FETCH,
        [
            *_fill(partition=0),
            *_fill(partition=1),
            Ask(FETCH, fetch_to((known_topic(), [from_offset(0), from_offset(0, partition=1)]), max_bytes=100)),
            Ask(FETCH, fetch_to((known_topic(), [from_offset(7), from_offset(0, partition=1)]), max_bytes=1)),
            Ask(FETCH, fetch_to((known_topic(), [from_offset(0, partition=1), from_offset(0)]), max_bytes=300)),
        ],
        topics=[NewTopic(partitions=2)],
    ),
]

_EPOCHS = [
    _one("the current leader epoch", fetch(at={"current_leader_epoch": 0})),
    _one("a leader epoch of the future", fetch(at={"current_leader_epoch": 5})),
    _one("a leader epoch below minus one", fetch(at={"current_leader_epoch": -2})),
    _one("a last fetched epoch that fits", fetch(3, at={"current_leader_epoch": 0, "last_fetched_epoch": 0})),
    _one("a last fetched epoch of the future", fetch(3, at={"current_leader_epoch": 0, "last_fetched_epoch": 4})),
    _one("a last fetched epoch beyond the end", fetch(9, at={"current_leader_epoch": 0, "last_fetched_epoch": 0})),
    _one(
        "a last fetched epoch beyond the end, read committed",
        fetch(9, at={"current_leader_epoch": 0, "last_fetched_epoch": 0}, isolation_level=1),
    ),
    _one("a last fetched epoch and a negative offset", fetch(-5, at={"last_fetched_epoch": 0})),
    _one("a negative last fetched epoch", fetch(3, at={"current_leader_epoch": 0, "last_fetched_epoch": -2})),
]

_WRONG = [
    Scenario("no topics", FETCH, [Ask(FETCH, fetch_to())]),
    Scenario("a topic without partitions", FETCH, [Ask(FETCH, fetch_to((known_topic(), [])))], topics=[NewTopic()]),
    Scenario("an unknown topic", FETCH, [Ask(FETCH, fetch_to((unknown_topic(), [from_offset(0)])))]),
    Scenario("the zero id or an empty name", FETCH, [Ask(FETCH, fetch_to((("", ZERO_ID), [from_offset(0)])))]),
    Scenario("an unknown partition", FETCH, [Ask(FETCH, fetch(partition=4))], topics=[NewTopic()]),
    Scenario("a negative partition", FETCH, [Ask(FETCH, fetch(partition=-1))], topics=[NewTopic()]),
    Scenario(
        "one bad partition does not fail its neighbours",
        FETCH,
        [
            *_fill(),
            Ask(
                FETCH,
                fetch_to(
                    (unknown_topic(), [from_offset(0)]),
                    (known_topic(), [from_offset(99), from_offset(0, partition=1), from_offset(0, partition=8)]),
                    (known_topic("other"), [from_offset(0)]),
                ),
            ),
        ],
        topics=[NewTopic(partitions=2), NewTopic("other")],
    ),
    Scenario(
        "the same partition twice",
        FETCH,
        [*_fill(), Ask(FETCH, fetch_to((known_topic(), [from_offset(0), from_offset(6)])))],
        topics=[NewTopic()],
    ),
    Scenario("a body that is cut", FETCH, [Ask(FETCH, fetch(), cut=12)], topics=[NewTopic()]),
    Scenario("bytes after the body", FETCH, [Ask(FETCH, fetch(), extra=b"\0\1\2")], topics=[NewTopic()]),
]


def _session(epoch: int, *topics: tuple[tuple[object, object], list[Body]], forget: list[Body] | None = None) -> Ask:
    return Ask(
        FETCH,
        fetch_to(
            *topics,
            session_id=Learnt("session"),
            session_epoch=epoch,
            forgotten_topics_data=forget or [],
        ),
    )


def _opened(*topics: tuple[tuple[object, object], list[Body]]) -> Ask:
    return Ask(FETCH, fetch_to(*topics, session_id=0, session_epoch=0), learn={"session": "session_id"})


_BOTH = (known_topic(), [from_offset(0), from_offset(0, partition=1)])


def _sessions(name: str, *steps: Step, versions: range = WITH_SESSIONS) -> Scenario:
    return Scenario(name, FETCH, steps, topics=[NewTopic(partitions=3)], versions=versions)


_SESSIONS = [
    _sessions(
        "a session shows what changed",
        _opened(_BOTH),
        _session(1),
        *_fill(partition=1),
        _session(2),
        _session(3, (known_topic(), [from_offset(7, partition=1)])),
        _session(4),
    ),
    _sessions(
        "a session shows again what was not taken",
        *_fill(),
        _opened(_BOTH),
        _session(1),
        _session(2),
    ),
    _sessions(
        "a partition joins a session",
        _opened((known_topic(), [from_offset(0)])),
        *_fill(partition=2),
        _session(1, (known_topic(), [from_offset(0, partition=2)])),
        _session(2, (known_topic(), [from_offset(3, partition=2)])),
    ),
    _sessions(
        "a partition is forgotten",
        *_fill(),
        *_fill(partition=1),
        _opened(_BOTH),
        _session(1, forget=[{"topic": Topic("t"), "topic_id": TopicId("t"), "partitions": [0]}]),
        _session(2),
    ),
    _sessions(
        "a partition that was not there is forgotten",
        _opened(_BOTH),
        _session(1, forget=[{"topic": Topic("t"), "topic_id": TopicId("t"), "partitions": [2, 9]}]),
        _session(2),
    ),
    _sessions("the wrong session epoch", _opened(_BOTH), _session(3), _session(1), _session(1), _session(2)),
    _sessions(
        "an unknown session",
        Ask(FETCH, fetch_to(_BOTH, session_id=987_654_321, session_epoch=1)),
        Ask(FETCH, fetch_to(_BOTH, session_id=987_654_321, session_epoch=0)),
        Ask(FETCH, fetch_to(_BOTH, session_id=987_654_321, session_epoch=-1)),
        Ask(FETCH, fetch_to(_BOTH, session_id=0, session_epoch=1)),
        Ask(FETCH, fetch_to(_BOTH, session_id=-5, session_epoch=-5)),
    ),
    _sessions("a session is closed", _opened(_BOTH), _session(-1), _session(1)),
    _sessions("a session is closed with a last fetch", *_fill(), _opened(_BOTH), _session(-1, _BOTH), _session(1)),
    _sessions("a session is replaced", *_fill(), _opened(_BOTH), _session(0, _BOTH), _session(1)),
    _sessions("a session without partitions", _opened(), Ask(FETCH, fetch_to(session_epoch=0))),
    _sessions(
        "errors stay in a session",
        _opened((unknown_topic(), [from_offset(0)]), (known_topic(), [from_offset(50), from_offset(0, partition=7)])),
        _session(1),
        _session(2),
    ),
    _sessions(
        "a leader epoch of the future in a session",
        _opened((known_topic(), [from_offset(0, current_leader_epoch=3)])),
        _session(1),
    ),
    _sessions(
        "a last fetched epoch beyond the end in a session",
        *_fill(),
        _opened((known_topic(), [from_offset(9, last_fetched_epoch=0), from_offset(0, partition=1)])),
        _session(1),
        _session(2, (known_topic(), [from_offset(7, last_fetched_epoch=0)])),
        _session(3),
    ),
    _sessions(
        "the high watermark and the log start alone are news",
        *_fill(),
        _opened((known_topic(), [from_offset(7)])),
        _session(1),
        Ask(
            Api.DELETE_RECORDS,
            {"timeout": 5000, "topics": [{"name": Topic("t"), "partitions": [{"partition_index": 0, "offset": 2}]}]},
            version=2,
        ),
        Eventually(Api.LIST_OFFSETS, list_offsets(-2), "topics.0.partitions.0.offset", 2),
        _session(2),
        _session(3),
    ),
    _sessions(
        "an unknown id in a session",
        _opened(((Topic("missing"), UNKNOWN_ID), [from_offset(0)])),
        _session(1, _BOTH),
        _session(2),
        versions=WITH_IDS,
    ),
]

SCENARIOS = [*_POSITIONS, *_LIMITS, *_EPOCHS, *_WRONG, *_SESSIONS]
