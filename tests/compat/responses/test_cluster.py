"""Scenarios that need several brokers, on a cluster of three of Apache Kafka's and a cluster of three of Kaspar's.

Broker 3 of both is stopped for the second part, and unregistered at its end.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from kaspar.supervisor.plan import HOST
from tests.compat.responses.api import Api
from tests.compat.responses.batches import Batch, numbered
from tests.compat.responses.conftest import Pair
from tests.compat.responses.placeholders import Context, Own, Topic
from tests.compat.responses.play import Stage, Transcript
from tests.compat.responses.scenario import Ask, Eventually, NewTopic, Scenario, Step
from tests.compat.responses.scenarios.requests import BROKER, SET, Body, produce, resource, setting
from tests.peers.kafka import kafka_jars
from tests.peers.kafka_cluster import KafkaCluster
from tests.peers.kaspar_cluster import KasparCluster
from tests.peers.missing import unless_missing

REASSIGN, REASSIGNMENTS = Api.ALTER_PARTITION_REASSIGNMENTS, Api.LIST_PARTITION_REASSIGNMENTS
ELECT, METADATA, PARTITIONS = Api.ELECT_LEADERS, Api.METADATA, Api.DESCRIBE_TOPIC_PARTITIONS
CLUSTER, QUORUM, DIRS = Api.DESCRIBE_CLUSTER, Api.DESCRIBE_QUORUM, Api.DESCRIBE_LOG_DIRS
CREATE, MORE, UNREGISTER = Api.CREATE_TOPICS, Api.CREATE_PARTITIONS, Api.UNREGISTER_BROKER
PREFERRED, UNCLEAN = 0, 1
ALL, LEFT, STOPPED, UNKNOWN = (1, 2, 3), (1, 2), 3, 9
FETCH_BYTES = 2_000

SETTINGS = {
    "auto.leader.rebalance.enable": "false",  # elections are what is tested
    "broker.rack": "here",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "min.insync.replicas": "1",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "3",
    "replica.fetch.max.bytes": str(FETCH_BYTES),  # small, so that a throttle bites after the first batch
}


# --- the requests -----------------------------------------------------------------------------------------------------


def _topic(*assignments: Sequence[int], **configs: str) -> NewTopic:
    return NewTopic("t", assignments=assignments, configs=configs)


def _reassignment(*partitions: tuple[int, list[int] | None], **more: object) -> Body:
    rows = [{"partition_index": number, "replicas": replicas} for number, replicas in partitions]
    return {"timeout": 10_000, "topics": [{"name": Topic("t"), "partitions": rows}], **more}


def _elections(*partitions: int, kind: int = PREFERRED, topic: object = None) -> Body:
    named = [{"topic": topic or Topic("t"), "partitions": list(partitions)}]
    return {"election_type": kind, "topic_partitions": named, "timeout": 10_000}


_NAMED: Body = {"topics": [{"name": Topic("t")}], "allow_auto_topic_creation": False}
_DESCRIBED: Body = {"topics": [{"name": Topic("t")}], "response_partition_limit": 100}
_NAMED_MOVES: Body = {"timeout": 10_000, "topics": [{"name": Topic("t"), "partition_indexes": [0, 1]}]}
_ALL_MOVES: Body = {"timeout": 10_000, "topics": None}
_NO_MOVES = Eventually(REASSIGNMENTS, _NAMED_MOVES, "topics.length", 0)
_ANY_CONTROLLER = ["Metadata.controller_id", "DescribeCluster.controller_id"]


def _until(field: str, value: object, *, partition: int = 0, brokers: Sequence[int] = ALL) -> list[Step]:
    """The topic as each broker describes it, once this field of a partition has this value there."""
    path = f"topics.0.partitions.{partition}.{field}"
    return [Eventually(PARTITIONS, _DESCRIBED, path, value, compare=True, broker=broker) for broker in brokers]


def _everywhere(api: Api, body: Body, brokers: Sequence[int] = ALL) -> list[Step]:
    return [Ask(api, body, broker=broker) for broker in brokers]


# --- reassignments and elections --------------------------------------------------------------------------------------

_MOVES = [
    Scenario(name, REASSIGN, [Ask(REASSIGN, _reassignment((0, after))), *_until("replica_nodes", after)], [_topic(before)])
    for name, before, after in (
        ("to another broker", [1], [2]),
        ("to two others", [1, 2], [2, 3]),
        ("more replicas", [1, 2], [1, 2, 3]),
        ("fewer replicas", [1, 2, 3], [3]),
        ("the same replicas in another order", [1, 2, 3], [3, 1, 2]),
    )
]  # fmt: skip

_REFUSED = [
    Scenario(
        name, REASSIGN, [Ask(REASSIGN, body), *_until("replica_nodes.length", 2)], [_topic([1, 2], [2, 3])], shared=True
    )
    for name, body in {
        "to a broker that the cluster does not have": _reassignment((0, [1, UNKNOWN])),
        "to a broker of the cluster twice": _reassignment((0, [2, 2])),
        "to its own replicas": _reassignment((0, [1, 2])),
        "cancelled in a cluster, and there is none": _reassignment((0, None)),
        "one right and one to an unknown broker": _reassignment((1, [2, 3]), (0, [UNKNOWN])),
    }.items()
]
_OF_SIZE = [
    Scenario(
        "another replication factor that is not allowed",
        REASSIGN,
        [
            Ask(REASSIGN, _reassignment((0, [1, 2, 3]), allow_replication_factor_change=False)),
            Ask(REASSIGN, _reassignment((0, [2]), allow_replication_factor_change=False)),
            Ask(REASSIGN, _reassignment((0, [1, 3]), allow_replication_factor_change=False)),
            *_until("replica_nodes", [1, 3]),
        ],
        [_topic([1, 2])],
        versions=[1],
    )
]

_ELECTIONS = [
    Scenario(
        "a preferred one that is needed",
        ELECT,
        [Ask(ELECT, _elections(0)), *_until("leader_id", 2), Ask(ELECT, _elections(0))],
        [_topic([1, 2])],
        given=[Ask(REASSIGN, _reassignment((0, [2, 1])), version=1), *_until("replica_nodes", [2, 1])],
    ),
    *[
        Scenario(name, ELECT, [Ask(ELECT, body)], [_topic([1, 2, 3], [2, 3, 1])], shared=True)
        for name, body in {
            "preferred ones that are not needed": _elections(0, 1),
            "unclean ones that are not needed": _elections(0, 1, kind=UNCLEAN),
            "of an unknown topic and partition in a cluster": {
                "election_type": PREFERRED,
                "topic_partitions": [
                    {"topic": Topic("missing"), "partitions": [0]},
                    {"topic": Topic("t"), "partitions": [7]},
                ],
                "timeout": 10_000,
            },
        }.items()
    ],
]

# --- a reassignment under way -----------------------------------------------------------------------------------------

_BATCH = Batch(records=numbered(1, size=FETCH_BYTES))
_UNDER_WAY = (NewTopic("t", assignments=[[1]], configs={f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")}), NewTopic("other", assignments=[[2]]))  # fmt: skip
_THROTTLE = [
    Ask(
        Api.INCREMENTAL_ALTER_CONFIGS,
        {
            "resources": [
                resource(BROKER, str(broker), *(setting(f"{side}.replication.throttled.rate", "1", SET) for side in ("leader", "follower")))
                for broker in ALL
            ]
        },
        version=1,
    ),
    *[Ask(Api.PRODUCE, produce(_BATCH), version=12, broker=1)] * 10,
]  # fmt: skip
_LIST = [Ask(REASSIGNMENTS, body) for body in (_NAMED_MOVES, _ALL_MOVES)]
_LISTS = [
    Scenario("none in a cluster", REASSIGNMENTS, _LIST, [_topic([1], [2])]),
    Scenario(
        "one under way, which is then changed and cancelled",
        REASSIGNMENTS,
        [
            Ask(REASSIGN, _reassignment((0, [2])), version=1),
            *_LIST,
            Ask(REASSIGNMENTS, _NAMED_MOVES, broker=3),
            *_until("replica_nodes.length", 2),
            Ask(REASSIGN, _reassignment((0, [3, 1])), version=1),
            *_LIST,
            Ask(REASSIGN, _reassignment((0, None)), version=1),
            _NO_MOVES,
            *_LIST,
            *_until("replica_nodes", [1]),
            Ask(REASSIGN, _reassignment((0, None)), version=1),
        ],
        _UNDER_WAY,
        given=_THROTTLE,
    ),
]

# --- topics whose replicas are named ----------------------------------------------------------------------------------


def _new_topic(*assignments: list[int], numbers: Sequence[int] = (), **more: object) -> Body:
    rows = [
        {"partition_index": number, "broker_ids": brokers}
        for number, brokers in zip(numbers or range(len(assignments)), assignments, strict=True)
    ]
    created = {"name": Topic("t"), "num_partitions": -1, "replication_factor": -1, "assignments": rows, **more}
    return {"topics": [created], "timeout": 10_000}


_CREATED = [
    Scenario(name, CREATE, [Ask(CREATE, body)])
    for name, body in {
        "on a broker that the cluster does not have": _new_topic([1, UNKNOWN]),
        "on a broker of the cluster twice": _new_topic([1, 1]),
        "with another number of replicas in each partition": _new_topic([1, 2], [3]),
        "with a partition left out": _new_topic([1, 2], [2, 3], numbers=(0, 2)),
        "with a partition named twice": _new_topic([1, 2], [2, 3], numbers=(0, 0)),
        "on no brokers": _new_topic([]),
        "with assignments and a number of partitions": _new_topic([1, 2], num_partitions=1),
        "with assignments and a replication factor": _new_topic([1, 2], replication_factor=2),
        "with more replicas than the cluster has brokers": _new_topic(num_partitions=1, replication_factor=4),
    }.items()
]
_CREATED.append(
    Scenario(
        "on brokers that are named",
        CREATE,
        [Ask(CREATE, _new_topic([2, 3], [3, 1], [1, 2])), *_until("isr_nodes.length", 2, partition=2)],
    )
)


def _more_partitions(count: int, *assignments: list[int]) -> Body:
    rows = [{"broker_ids": brokers} for brokers in assignments]
    return {"topics": [{"name": Topic("t"), "count": count, "assignments": rows}], "timeout": 10_000}


_GROWN = [
    Scenario(
        "on brokers that are named",
        MORE,
        [Ask(MORE, _more_partitions(3, [2, 3], [3, 1])), *_until("isr_nodes.length", 2, partition=2)],
        [_topic([1, 2])],
    ),
    *[
        Scenario(name, MORE, [Ask(MORE, body)], [_topic([1, 2])], shared=True)
        for name, body in {
            "on fewer brokers than the others": _more_partitions(2, [3]),
            "on a broker that the cluster does not have": _more_partitions(2, [1, UNKNOWN]),
            "on a broker of the cluster twice": _more_partitions(2, [2, 2]),
            "with too few assignments": _more_partitions(3, [2, 3]),
            "with too many assignments": _more_partitions(2, [2, 3], [3, 1]),
            "on no brokers": _more_partitions(2, []),
        }.items()
    ],
]

# --- what is described ------------------------------------------------------------------------------------------------

_REPLICATED = _topic([1, 2, 3], [2, 3, 1], [3, 1, 2])
_ALL_BROKERS: Body = {"endpoint_type": 1, "include_fenced_brokers": True}
_OF_A_LOG = [
    f"DescribeQuorum.topics.*.partitions.*.{field}" for field in ("leader_id", "leader_epoch", "high_watermark")
]
_METADATA_LOG: Body = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
_SIZE = "results.0.topics.0.partitions.0.partition_size"
_DIRS: Body = {"topics": [{"topic": Topic("t"), "partitions": [0, 1, 2]}]}
_DESCRIPTIONS = [
    Scenario(
        "a replicated topic from each broker",
        METADATA,
        _everywhere(METADATA, _NAMED),
        [_REPLICATED],
        masks=_ANY_CONTROLLER,
        shared=True,
    ),
    Scenario(
        "a replicated topic from each broker",
        PARTITIONS,
        _everywhere(PARTITIONS, _DESCRIBED),
        [_REPLICATED],
        shared=True,
    ),
    Scenario("from each broker", CLUSTER, _everywhere(CLUSTER, _ALL_BROKERS), masks=_ANY_CONTROLLER),
    Scenario("from each broker", QUORUM, _everywhere(QUORUM, _METADATA_LOG), masks=_OF_A_LOG),
    Scenario(
        "the replicas of each broker",
        DIRS,
        _everywhere(DIRS, _DIRS),
        [_topic([1, 2], [2, 1], [3, 1])],
        given=[
            Ask(Api.PRODUCE, produce(_BATCH), version=12, broker=1, learn={"offset": "responses.0.partition_responses.0.base_offset"}),
            Eventually(DIRS, {"topics": [{"topic": Topic("t"), "partitions": [0]}]}, _SIZE, len(_BATCH.resolve(Context("")))  , broker=2),
        ],
        shared=True,
    ),
]  # fmt: skip

# --- ids and coordinators ---------------------------------------------------------------------------------------------

_NO_TRANSACTION: Body = {"transactional_id": None, "transaction_timeout": 60_000}
_IDS = [
    Scenario(
        "distinct from every broker",
        Api.INIT_PRODUCER_ID,
        [Ask(Api.INIT_PRODUCER_ID, _NO_TRANSACTION, broker=broker) for broker in (*ALL, *ALL)],
        given=[
            Eventually(Api.INIT_PRODUCER_ID, _NO_TRANSACTION, "error_code", "NONE", broker=broker) for broker in ALL
        ],
    )
]

WITH_ALL = [*_MOVES, *_REFUSED, *_OF_SIZE, *_LISTS, *_ELECTIONS, *_CREATED, *_GROWN, *_DESCRIPTIONS, *_IDS]

# --- with a broker stopped --------------------------------------------------------------------------------------------

SCENARIOS: Sequence[Scenario] = (*WITH_ALL,)


# --- the clusters -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _At:
    host: str
    port: int


@dataclass
class _Side:
    cluster: KafkaCluster | KasparCluster
    stage: Stage

    def stop(self, number: int) -> None:
        match self.cluster:
            case KafkaCluster():
                self.cluster.stop(number)
            case KasparCluster():
                self.cluster.cluster.stop_broker(number)


def _side(cluster: KafkaCluster | KasparCluster) -> _Side:
    match cluster:
        case KafkaCluster():
            brokers = {number: _At(cluster.node(number).host, cluster.node(number).port) for number in ALL}
        case KasparCluster():
            brokers = {number: _At(HOST, cluster.cluster.port(number)) for number in ALL}
    return _Side(cluster, Stage(brokers[1], brokers))


def _kafka(folder: Path) -> KafkaCluster:
    cluster = KafkaCluster(folder, overrides=SETTINGS)
    for number in cluster.numbers:
        node = cluster.node(number)
        node.overrides = {**node.overrides, "log.dirs": str(node.data_dir)}  # one, as Kaspar's
    return cluster


@dataclass(frozen=True)
class Clusters(Pair):
    sides: Sequence[_Side]


@pytest.fixture(scope="module")
def clusters(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    same = request.config.getoption("--against") == "kafka"
    unless_missing(kafka_jars)
    folder = tmp_path_factory.mktemp("clusters")
    subject = _kafka(folder / "subject") if same else KasparCluster(folder / "subject", overrides=SETTINGS)
    with ExitStack() as running, ThreadPoolExecutor(2) as beside:
        starting = [beside.submit(each.__enter__) for each in (_kafka(folder / "kafka"), subject)]
        for each in starting:
            running.push(each.result())
        sides = list(beside.map(_side, (each.result() for each in starting)))
        yield Clusters(sides[0].stage, sides[1].stage, same, 0, beside, sides)


def _cases(scenarios: Sequence[Scenario]) -> list[object]:
    return [
        pytest.param(scenario, version, id=f"{scenario.slug}-v{version}")
        for scenario in scenarios
        for version in scenario.tested_versions()
    ]


@pytest.mark.parametrize(("scenario", "version"), _cases(WITH_ALL))
def test_a_cluster_responds_as_apache_kafka(scenario: Scenario, version: int, clusters: Clusters) -> None:
    clusters.check_responses(scenario, version)
