"""ApiVersions, Metadata, DescribeTopicPartitions, DescribeCluster and DescribeLogDirs."""

from tests.compat.responses.api import Api
from tests.compat.responses.batches import Batch, numbered
from tests.compat.responses.placeholders import Topic, TopicId
from tests.compat.responses.scenario import Ask, NewTopic, Scenario
from tests.compat.responses.scenarios.requests import UNKNOWN_ID, ZERO_ID, Body, produce, see_topic, until_topic

VERSIONS, METADATA, PARTITIONS = Api.API_VERSIONS, Api.METADATA, Api.DESCRIBE_TOPIC_PARTITIONS
CLUSTER, DIRS = Api.DESCRIBE_CLUSTER, Api.DESCRIBE_LOG_DIRS
TOO_LONG = "n" * 250


def _client(name: str, version: str = "1.0") -> Body:
    return {"client_software_name": name, "client_software_version": version}


_VERSIONS = [
    Scenario("an ordinary client", VERSIONS, [Ask(VERSIONS, _client("apache-kafka-java", "4.3.0"))]),
    Scenario("no software name", VERSIONS, [Ask(VERSIONS, _client(""))], versions=(3, 4)),
    Scenario("a software name with a space", VERSIONS, [Ask(VERSIONS, _client("a b"))], versions=(3, 4)),
    Scenario("a software name that begins with a dot", VERSIONS, [Ask(VERSIONS, _client(".a"))], versions=(3, 4)),
    Scenario("no software version", VERSIONS, [Ask(VERSIONS, _client("a", ""))], versions=(3, 4)),
    Scenario(
        "twice on a connection",
        VERSIONS,
        [Ask(VERSIONS, _client("a")), Ask(VERSIONS, _client("a"))],
        masks=["ApiVersions.finalized_features_epoch"],  # Kafka's is an offset of its metadata log, which goes on
    ),
]


def _named(*names: object, create: bool = False, **more: object) -> Body:
    return {
        "topics": [{"name": name} for name in names],
        "allow_auto_topic_creation": create,
        **more,
    }


_TWO = [NewTopic("a", partitions=3), NewTopic("b")]
WITH_IDS = range(10, METADATA.last + 1)
_NO_CREATION = range(4, METADATA.last + 1)  # older versions always create
_METADATA = [
    Scenario(
        "all topics",
        METADATA,
        [Ask(METADATA, {"topics": None})],
        _TWO,
        versions=range(1, METADATA.last + 1),
        shared=True,
    ),
    Scenario("an empty list", METADATA, [Ask(METADATA, _named())], _TWO, shared=True),
    Scenario("one topic", METADATA, [Ask(METADATA, _named(Topic("a")))], _TWO, shared=True),
    Scenario("two topics", METADATA, [Ask(METADATA, _named(Topic("b"), Topic("a")))], _TWO, shared=True),
    Scenario("the same topic twice", METADATA, [Ask(METADATA, _named(Topic("a"), Topic("a")))], _TWO, shared=True),
    Scenario("an unknown topic", METADATA, [Ask(METADATA, _named(Topic("missing")))], versions=_NO_CREATION),
    Scenario(
        "a topic is made by asking for it",
        METADATA,
        [
            Ask(METADATA, _named(Topic("made"), create=True)),
            until_topic("made", partitions=2),
            Ask(METADATA, _named(Topic("made"))),
        ],
    ),
    Scenario("a topic name that may not be", METADATA, [Ask(METADATA, _named("a b", create=True))]),
    Scenario("an empty name", METADATA, [Ask(METADATA, _named("", create=True))]),
    Scenario("a dot as a name", METADATA, [Ask(METADATA, _named(".", create=True))]),
    Scenario("a name that is too long", METADATA, [Ask(METADATA, _named(TOO_LONG, create=True))]),
    Scenario(
        "a bad name, not to be made", METADATA, [Ask(METADATA, _named("a b", TOO_LONG, ""))], versions=_NO_CREATION
    ),
    Scenario(
        "a name that collides when made",
        METADATA,
        [Ask(METADATA, _named(Topic("x_y"), create=True)), see_topic("x_y")],
        [NewTopic("x.y")],
    ),
    Scenario(
        "a known and an unknown topic",
        METADATA,
        [Ask(METADATA, _named(Topic("missing"), Topic("a")))],
        _TWO,
        _NO_CREATION,
        shared=True,
    ),
    Scenario(
        "what the client may do",
        METADATA,
        [
            Ask(
                METADATA,
                _named(
                    Topic("a"),
                    Topic("missing"),
                    include_cluster_authorized_operations=True,
                    include_topic_authorized_operations=True,
                ),
            )
        ],
        _TWO,
        shared=True,
        versions=range(8, METADATA.last + 1),
    ),
    *[
        Scenario(
            name,
            METADATA,
            [Ask(METADATA, {"topics": topics, "allow_auto_topic_creation": False})],
            _TWO,
            WITH_IDS,
            shared=True,
        )
        for name, topics in {
            "by id": [{"topic_id": TopicId("a"), "name": None}],
            "by an unknown id": [{"topic_id": UNKNOWN_ID, "name": None}],
            "by id and name": [{"topic_id": TopicId("a"), "name": Topic("a")}],
            "by id and another's name": [{"topic_id": TopicId("a"), "name": Topic("b")}],
            "by unknown id and name": [{"topic_id": UNKNOWN_ID, "name": Topic("a")}],
            "by neither id nor name": [{"topic_id": ZERO_ID, "name": None}],
            "one by id and one by name": [
                {"topic_id": TopicId("a"), "name": None},
                {"topic_id": ZERO_ID, "name": Topic("b")},
            ],
            "by the same id twice": [
                {"topic_id": TopicId("a"), "name": None},
                {"topic_id": TopicId("a"), "name": None},
            ],
        }.items()
    ],
    Scenario("a body that is cut", METADATA, [Ask(METADATA, _named(Topic("a")), cut=5)]),
    Scenario("bytes after the body", METADATA, [Ask(METADATA, _named(Topic("a")), extra=b"\0\1\2")], _TWO, shared=True),
]


def _pages(*names: object, limit: int = 2000, cursor: tuple[object, int] | None = None) -> Body:
    body: Body = {"topics": [{"name": name} for name in names], "response_partition_limit": limit}
    return body if cursor is None else {**body, "cursor": {"topic_name": cursor[0], "partition_index": cursor[1]}}


_A, _B = Topic("a"), Topic("b")
_PARTITIONS = [
    Scenario(name, PARTITIONS, [Ask(PARTITIONS, body)], _TWO, shared=True)
    for name, body in {
        "one topic": _pages(_A),
        "two topics": _pages(_B, _A),
        "the same topic twice": _pages(_A, _A),
        "an unknown topic": _pages(Topic("missing"), _A),
        "a topic name that may not be": _pages("a b"),
        "an empty name": _pages(""),
        "a page of two partitions": _pages(_A, _B, limit=2),
        "a page that ends with a topic": _pages(_A, _B, limit=3),
        "a page of one topic": _pages(_A, limit=1),
        "a limit of zero": _pages(_A, limit=0),
        "a negative limit": _pages(_A, limit=-1),
        "a cursor inside a topic": _pages(_A, _B, cursor=(_A, 1)),
        "a cursor at the next topic": _pages(_A, _B, cursor=(_B, 0)),
        "a cursor and a limit": _pages(_A, _B, limit=1, cursor=(_A, 1)),
        "a cursor beyond the partitions": _pages(_A, cursor=(_A, 7)),
        "a cursor with a negative partition": _pages(_A, cursor=(_A, -1)),
        "a cursor at a topic that was not asked for": _pages(_A, cursor=(_B, 0)),
        "a negative cursor over all topics": _pages(cursor=(_A, -1)),
        "a cursor at an unknown topic": _pages(_A, _B, cursor=(Topic("aa"), 0)),
    }.items()
]

_CLUSTER = [
    Scenario("as it is", CLUSTER, [Ask(CLUSTER, {})]),
    Scenario("what the client may do", CLUSTER, [Ask(CLUSTER, {"include_cluster_authorized_operations": True})]),
    Scenario("controllers", CLUSTER, [Ask(CLUSTER, {"endpoint_type": 2})]),
    Scenario("endpoints of no kind", CLUSTER, [Ask(CLUSTER, {"endpoint_type": 0})]),
    Scenario("endpoints of an unknown kind", CLUSTER, [Ask(CLUSTER, {"endpoint_type": 7})]),
    Scenario("fenced brokers too", CLUSTER, [Ask(CLUSTER, {"include_fenced_brokers": True})]),
]

_FILLED = [
    Ask(Api.PRODUCE, produce(Batch(records=numbered(5)), topic="a"), version=13),
    Ask(Api.PRODUCE, produce(Batch(), topic="a", partition=2), version=13),
]


def _asked(*topics: tuple[object, list[int]]) -> Body:
    return {"topics": [{"topic": name, "partitions": partitions} for name, partitions in topics]}


_DIRS = [
    Scenario(name, DIRS, [Ask(DIRS, body)], _TWO, given=_FILLED, shared=True)
    for name, body in {
        "two topics": _asked((_A, [0, 1, 2]), (_B, [0])),
        "some partitions": _asked((_A, [2])),
        "no partitions": _asked((_A, [])),
        "no topics": _asked(),
        "an unknown topic": _asked((Topic("missing"), [0])),
        "an unknown partition": _asked((_A, [0, 8, -1])),
        "the same topic twice": _asked((_A, [0]), (_A, [1])),
        "a topic name that may not be": _asked(("a b", [0])),
    }.items()
]
_DIRS.append(Scenario("everything", DIRS, [Ask(DIRS, {"topics": None})], _TWO, given=_FILLED, shared=True))

SCENARIOS = [*_VERSIONS, *_METADATA, *_PARTITIONS, *_CLUSTER, *_DIRS]
