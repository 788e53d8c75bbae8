"""Scenarios that need several brokers, on a cluster of three of Apache Kafka's and a cluster of three of Kaspar's.

Broker 3 of both is stopped for the second part, and unregistered at its end.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kaspar.supervisor.plan import HOST
from tests.compat.responses.api import Api
from tests.compat.responses.batches import Batch, numbered
from tests.compat.responses.conftest import Pair
from tests.compat.responses.placeholders import Context, Topic
from tests.compat.responses.play import Stage
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


def _until_moved(replicas: list[int]) -> list[Step]:
    """The topic as each broker describes it, once it has these replicas and all of them are in sync."""
    moved = [
        Eventually(PARTITIONS, _DESCRIBED, "topics.0.partitions.0.replica_nodes", replicas, broker=broker)
        for broker in ALL
    ]
    return [*moved, *_until("isr_nodes.length", len(replicas))]


def _ends(api: Api) -> Sequence[int]:
    """The versions between them are compared with one broker."""
    return api.first, api.last


def _everywhere(api: Api, body: Body, brokers: Sequence[int] = ALL) -> list[Step]:
    return [Ask(api, body, broker=broker) for broker in brokers]


# --- reassignments and elections --------------------------------------------------------------------------------------

_MOVES = [
    Scenario(name, REASSIGN, [Ask(REASSIGN, _reassignment((0, after))), *_until_moved(after)], [_topic(before)])
    for name, before, after in (
        ("to another broker", [1], [2]),
        ("to two others", [1, 2], [2, 3]),
        ("more replicas", [1, 2], [1, 2, 3]),
        ("fewer replicas", [1, 2, 3], [3]),
        ("the same replicas in another order", [1, 2, 3], [3, 1, 2]),
    )
]

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
            *_until_moved([1, 3]),
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
        given=[Ask(REASSIGN, _reassignment((0, [2, 1])), version=1), *_until_moved([2, 1])],
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
_BOTH_SIDES = ("leader", "follower")
_THROTTLED = {f"{side}.replication.throttled.replicas": "*" for side in _BOTH_SIDES}
_UNDER_WAY = [NewTopic("t", assignments=[[1]], configs=_THROTTLED)]
_RATES = [setting(f"{side}.replication.throttled.rate", "1", SET) for side in _BOTH_SIDES]
_THROTTLE = [
    Ask(
        Api.INCREMENTAL_ALTER_CONFIGS,
        {"resources": [resource(BROKER, str(broker), *_RATES) for broker in ALL]},
        version=1,
    ),
    *[Ask(Api.PRODUCE, produce(_BATCH), version=12, broker=1)] * 10,
]
_LIST = [Ask(REASSIGNMENTS, body) for body in (_NAMED_MOVES, _ALL_MOVES)]
_LISTS = [
    Scenario("none in a cluster", REASSIGNMENTS, _LIST, [_topic([1], [2])]),
    Scenario(
        "one under way, which is then cancelled",
        REASSIGNMENTS,
        [
            Ask(REASSIGN, _reassignment((0, [2])), version=1),
            *_LIST,
            Ask(REASSIGNMENTS, _NAMED_MOVES, broker=3),
            *_until("replica_nodes.length", 2),
            Ask(REASSIGN, _reassignment((0, None)), version=1),
            _NO_MOVES,
            *_LIST,
            *_until("replica_nodes", [1]),
            Ask(REASSIGN, _reassignment((0, None)), version=1),
        ],
        _UNDER_WAY,
        given=_THROTTLE,
    ),
    Scenario(
        "one under way, which is then changed and cancelled",
        REASSIGNMENTS,
        [
            Ask(REASSIGN, _reassignment((0, [2])), version=1),
            Ask(REASSIGN, _reassignment((0, [3, 1])), version=1),
            *_LIST,
            *_until("replica_nodes.0", 3),
            Ask(REASSIGN, _reassignment((0, None)), version=1),
            _NO_MOVES,
            *_until("replica_nodes.0", 1),
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
    Scenario(name, CREATE, [Ask(CREATE, body)], versions=_ends(CREATE))
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
        versions=_ends(CREATE),
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
        Scenario(name, MORE, [Ask(MORE, body)], [_topic([1, 2])], versions=_ends(MORE), shared=True)
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
    f"DescribeQuorum.topics.*.partitions.*.{field}"
    for field in ("leader_id", "leader_epoch", "high_watermark", "current_voters.*.log_end_offset")
]
_METADATA_LOG: Body = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
_SIZE = "results.0.topics.0.partitions.0.partition_size"
_DIRS: Body = {"topics": [{"topic": Topic("t"), "partitions": [0, 1, 2]}]}
_FIRST_DIR: Body = {"topics": [{"topic": Topic("t"), "partitions": [0]}]}
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
            Ask(Api.PRODUCE, produce(_BATCH), version=12, broker=1),
            Eventually(DIRS, _FIRST_DIR, _SIZE, len(_BATCH.resolve(Context(""))), broker=2),
        ],
        shared=True,
    ),
]

# --- ids and coordinators ---------------------------------------------------------------------------------------------

_NO_TRANSACTION: Body = {"transactional_id": None, "transaction_timeout": 60_000}
_IDS = [
    Scenario(
        "distinct from every broker",
        Api.INIT_PRODUCER_ID,
        [Ask(Api.INIT_PRODUCER_ID, _NO_TRANSACTION, broker=broker) for broker in (*ALL, *ALL)],
        versions=_ends(Api.INIT_PRODUCER_ID),
        given=[
            Eventually(Api.INIT_PRODUCER_ID, _NO_TRANSACTION, "error_code", "NONE", broker=broker) for broker in ALL
        ],
    )
]

WITH_ALL = [*_MOVES, *_REFUSED, *_OF_SIZE, *_LISTS, *_ELECTIONS, *_CREATED, *_GROWN, *_DESCRIPTIONS, *_IDS]

_GROUPS = [f"group-{number}" for number in range(20)]
_OF_GROUPS: Body = {"coordinator_keys": _GROUPS, "key_type": 0}
_COORDINATORS = Scenario(
    "of many groups",
    Api.FIND_COORDINATOR,
    [
        Eventually(Api.FIND_COORDINATOR, _OF_GROUPS, f"coordinators.{number}.error_code", "NONE", compare=True)
        for number in range(len(_GROUPS))
    ],
    versions=[Api.FIND_COORDINATOR.last],
    masks=[f"FindCoordinator.coordinators.*.{field}" for field in ("node_id", "port")],
    shared=True,
)

# --- with broker 3 stopped --------------------------------------------------------------------------------------------

_LOST = [NewTopic("t", assignments=[[3, 1, 2], [1, 2, 3]]), NewTopic("alone", assignments=[[3]])]
_BOTH: Body = {"topics": [{"name": Topic("t")}, {"name": Topic("alone")}]}
_LEFT_OF_BOTH: Body = {**_BOTH, "allow_auto_topic_creation": False}
# Their topics are created before it stops.
AFTER_STOP = [
    Scenario(
        "offline replicas",
        PARTITIONS,
        _everywhere(PARTITIONS, {**_BOTH, "response_partition_limit": 100}, LEFT),
        _LOST,
        shared=True,
    ),
    *[
        Scenario(name, ELECT, [Ask(ELECT, body)], _LOST, shared=True)
        for name, body in {
            "the preferred leader is offline": _elections(0, 1),
            "the only replica is offline": _elections(0, topic=Topic("alone")),
            "an unclean one, and the only replica is offline": _elections(0, kind=UNCLEAN, topic=Topic("alone")),
        }.items()
    ],
    Scenario(
        "replicas of an offline leader", DIRS, _everywhere(DIRS, _DIRS, LEFT), [_topic([3, 1], [3, 2])], shared=True
    ),
    Scenario(
        "offline replicas",
        METADATA,
        [
            # Kaspar lists a broker for some seconds after it has stopped.
            *[Eventually(METADATA, _LEFT_OF_BOTH, "brokers.length", len(LEFT), broker=broker) for broker in LEFT],
            *_everywhere(METADATA, _LEFT_OF_BOTH, LEFT),
        ],
        _LOST,
        masks=_ANY_CONTROLLER,
        shared=True,
    ),
]
_TO_STOPPED = [
    Scenario("with a broker that is stopped", CLUSTER, _everywhere(CLUSTER, _ALL_BROKERS, LEFT), masks=_ANY_CONTROLLER),
    Scenario(
        "with a broker that is stopped, which is not requested",
        CLUSTER,
        _everywhere(CLUSTER, {"endpoint_type": 1}, LEFT),
        masks=_ANY_CONTROLLER,
    ),
    Scenario(
        "to a broker that is stopped",
        REASSIGN,
        [
            Ask(REASSIGN, _reassignment((0, [1, STOPPED]))),
            *[Ask(REASSIGNMENTS, body, version=0) for body in (_NAMED_MOVES, _ALL_MOVES)],
            *_until("replica_nodes.length", 2, brokers=LEFT),
            Ask(REASSIGN, _reassignment((0, None))),
            _NO_MOVES,
            *_until("replica_nodes", [1], brokers=LEFT),
            Ask(REASSIGN, _reassignment((0, [STOPPED]))),
            Ask(REASSIGN, _reassignment((0, None))),
            _NO_MOVES,
        ],
        [_topic([1])],
    ),
    Scenario(
        "on a broker that is stopped and another",
        CREATE,
        [Ask(CREATE, _new_topic([3, 1])), *_until("leader_id", 1, brokers=LEFT)],
        versions=_ends(CREATE),
    ),
    Scenario("on a broker that is stopped", CREATE, [Ask(CREATE, _new_topic([3]))], versions=_ends(CREATE)),
    Scenario(
        "with more replicas than brokers run",
        CREATE,
        [
            Ask(CREATE, _new_topic(num_partitions=1, replication_factor=3)),
            Eventually(PARTITIONS, _DESCRIBED, "topics.0.partitions.0.offline_replicas", [STOPPED]),
        ],
        versions=_ends(CREATE),
    ),
    Scenario(
        "on a broker that is stopped and another",
        MORE,
        [Ask(MORE, _more_partitions(2, [3, 1])), *_until("leader_id", 1, partition=1, brokers=LEFT)],
        [_topic([1, 2])],
    ),
    Scenario("on a broker that is stopped", MORE, [Ask(MORE, _more_partitions(2, [3]))], [_topic([1])], shared=True),
]
_UNREGISTERED = [
    Scenario("one that the cluster does not have", UNREGISTER, [Ask(UNREGISTER, {"broker_id": UNKNOWN})]),
    Scenario(
        "one that is stopped",
        UNREGISTER,
        [
            Ask(UNREGISTER, {"broker_id": STOPPED}),
            Eventually(CLUSTER, _ALL_BROKERS, "brokers.length", 2, compare=True, broker=1),
            Eventually(CLUSTER, _ALL_BROKERS, "brokers.length", 2, compare=True, broker=2),
            Ask(UNREGISTER, {"broker_id": STOPPED}),
            Ask(REASSIGN, _reassignment((0, [1, STOPPED])), version=1),
            Ask(PARTITIONS, _DESCRIBED, version=0),
        ],
        [_topic([3, 1, 2])],
        masks=_ANY_CONTROLLER,
    ),
]
WITHOUT_ONE = [*_TO_STOPPED, *AFTER_STOP, *_UNREGISTERED]

SCENARIOS: Sequence[Scenario] = (*WITH_ALL, *WITHOUT_ONE, _COORDINATORS)


# --- the clusters -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _At:
    host: str
    port: int


@dataclass(frozen=True)
class _Side:
    cluster: KafkaCluster | KasparCluster
    stage: Stage

    def stop(self, number: int) -> None:
        match self.cluster:
            case KafkaCluster():
                self.cluster.stop(number)
            case KasparCluster():
                self.cluster.cluster.stop_broker(number)
        del self.stage.brokers[number]


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
        started = beside.map(running.enter_context, (_kafka(folder / "kafka"), subject))
        sides = [_side(cluster) for cluster in started]
        yield Clusters(sides[0].stage, sides[1].stage, same, 0, beside, sides)


@pytest.fixture(scope="module")
def without_one(clusters: Clusters) -> Clusters:
    """Broker 3 has stopped, and the others know it."""
    for scenario in AFTER_STOP:
        clusters.play(replace(scenario, steps=()), scenario.tested_versions()[0])
    with ThreadPoolExecutor(2) as beside:
        list(beside.map(lambda side: side.stop(STOPPED), clusters.sides))
    known = [Eventually(METADATA, {"topics": []}, "brokers.length", len(LEFT), broker=broker) for broker in LEFT]
    clusters.play(Scenario("the brokers left", METADATA, known), METADATA.last)
    return clusters


def _cases(scenarios: Sequence[Scenario]) -> list[object]:
    return [
        pytest.param(scenario, version, id=f"{scenario.slug}-v{version}")
        for scenario in scenarios
        for version in scenario.tested_versions()
    ]


@pytest.mark.parametrize(("scenario", "version"), _cases(WITH_ALL))
def test_a_cluster_responds_as_apache_kafka(scenario: Scenario, version: int, clusters: Clusters) -> None:
    clusters.check_responses(scenario, version)


def _check_coordinators(clusters: Clusters, brokers: Sequence[int]) -> None:
    clusters.check_responses(_COORDINATORS, Api.FIND_COORDINATOR.last)
    for transcript in clusters.play(_COORDINATORS, Api.FIND_COORDINATOR.last):
        _, said = transcript.entries[-1]
        assert {each["node_id"] for each in said["coordinators"]} == set(brokers)


def test_every_broker_coordinates_groups(clusters: Clusters) -> None:
    _check_coordinators(clusters, ALL)


@pytest.mark.parametrize(("scenario", "version"), _cases(WITHOUT_ONE))
def test_a_cluster_without_a_broker_responds_as_apache_kafka(
    scenario: Scenario, version: int, without_one: Clusters
) -> None:
    without_one.check_responses(scenario, version)


def test_the_brokers_left_coordinate_all_groups(without_one: Clusters) -> None:
    _check_coordinators(without_one, LEFT)
