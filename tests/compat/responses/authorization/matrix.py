"""The matrix: each API by a guest without an ACL, with one that denies (for one resource, for all), with those that it
needs for one of two resources, and with all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.compat.responses.api import Api
from tests.compat.responses.authorization.acls import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    Need,
    all_allowed,
    allowed,
    creation,
    denied,
    guest_acls_are,
    selection,
)
from tests.compat.responses.batches import TRANSACTIONAL, Batch
from tests.compat.responses.placeholders import Learnt, Own, Topic, TopicId
from tests.compat.responses.scenario import Ask, NewTopic, Scenario, Step
from tests.compat.responses.scenarios import requests
from tests.compat.responses.scenarios.consumer_groups import consumer
from tests.compat.responses.scenarios.group_requests import GROUP as GROUP_ID
from tests.compat.responses.scenarios.group_requests import (
    ID,
    at,
    commit,
    committed,
    join,
    producer,
    sync,
    transactional,
)
from tests.compat.responses.scenarios.requests import (
    Body,
    fetch_to,
    from_offset,
    known_topic,
    produce_to,
    resource,
    setting,
)

T, U, NEW = Topic("t"), Topic("u"), Topic("new")
OTHER_GROUP = Own("other")
TWO = (NewTopic("t"), NewTopic("u"))
NOBODY = "User:nobody"


@dataclass(frozen=True)
class Entry:
    """`needs` is all that the request needs. Where the first of two resources is enough for a part of it, `part` is
    what that needs.
    """

    name: str
    api: Api
    body: Body
    needs: Sequence[Need]
    part: Sequence[Need] = ()
    topics: Sequence[NewTopic] = TWO
    given: Sequence[Step] = ()
    versions: Sequence[int] | None = None
    masks: Sequence[str] = ()
    unordered: Sequence[str] = ()
    allow: bool = True  # False: what is allowed differs for reasons of its own, which other scenarios are about
    more: Mapping[str, object] = field(default_factory=dict)  # of the request to be sent: patience, has_response

    def scenario(self) -> Scenario:
        ask = Ask(self.api, self.body, guest=True, **self.more)  # type: ignore[arg-type]
        steps: list[Step] = [*guest_acls_are(), ask]
        kinds = {(need.operation, need.kind): need for need in reversed(self.needs)}
        for need in kinds.values():
            steps += [*guest_acls_are(*all_allowed(self.needs), denied(need)), ask]
            if need.kind != CLUSTER:
                steps += [*guest_acls_are(*all_allowed(self.needs), denied(need, wildcard=True)), ask]
        if self.part:
            steps += [*guest_acls_are(*allowed(self.part)), ask]
        if self.allow:
            steps += [*guest_acls_are(*allowed(self.needs)), ask]
        steps += guest_acls_are()
        return Scenario(
            self.name,
            self.api,
            steps,
            self.topics,
            versions=self.versions,
            masks=self.masks,
            unordered=(*self.unordered, "DeleteAcls.filter_results.*.matching_acls"),
            given=self.given,
        )


def on_topics(operation: int) -> list[Need]:
    return [Need(operation, TOPIC, T), Need(operation, TOPIC, U)]


def on_group(operation: int, name: object = GROUP_ID) -> Need:
    return Need(operation, GROUP, name)


def on_id(operation: int) -> Need:
    return Need(operation, TRANSACTIONAL_ID, ID)


def on_cluster(operation: int) -> Need:
    return Need(operation, CLUSTER)


def _named(*names: object, **fields: object) -> list[Body]:
    return [{"name": name, **fields} for name in names]


def _two(operation: int) -> dict[str, Any]:
    needs = on_topics(operation)
    return {"needs": needs, "part": needs[:1]}


def _offsets(*topics: str) -> list[Body]:
    return [{"name": Topic(each), "topic_id": TopicId(each), "partitions": [at(0, 5)]} for each in topics]


def _fetched(**more: object) -> Body:
    topics = [{"name": Topic(each), "partition_indexes": [0]} for each in ("t", "u")]
    with_ids = [{**each, "topic_id": TopicId(short)} for each, short in zip(topics, ("t", "u"), strict=True)]
    group = {"group_id": GROUP_ID, "topics": with_ids, **more}
    return {"group_id": GROUP_ID, "topics": topics, **more, "groups": [group]}


def _added(*names: object) -> Body:
    topics = [{"name": name, "partitions": [0]} for name in names]
    one = {"transactional_id": ID, **producer(), "topics": topics}
    return {**{f"v3_and_below_{name}": value for name, value in one.items()}, "transactions": [one]}


_RECORDS = [
    Entry(
        "to two topics",
        Api.PRODUCE,
        produce_to(*((known_topic(each), {0: Batch()}) for each in "tu")),
        **_two(WRITE),
        unordered=["Produce.responses"],
    ),
    Entry(
        "in a transaction",
        Api.PRODUCE,
        produce_to(
            (
                known_topic(),
                {
                    0: Batch(
                        attributes=TRANSACTIONAL,
                        producer_id=Learnt("p"),
                        producer_epoch=Learnt("p epoch"),
                        base_sequence=0,
                    )
                },
            ),
            transactional_id=ID,
        ),
        [on_id(WRITE), Need(WRITE, TOPIC, T)],
        given=[transactional()],
        masks=["Produce.responses.*.error_message"],  # which Kafka does not have here
    ),
    Entry(
        "from two topics", Api.FETCH, fetch_to(*((known_topic(each), [from_offset(0)]) for each in "tu")), **_two(READ)
    ),
    Entry(
        "of two topics",
        Api.LIST_OFFSETS,
        {"replica_id": -1, "topics": _named(T, U, partitions=[{"partition_index": 0, "timestamp": -1}])},
        **_two(DESCRIBE),
        unordered=["ListOffsets.topics"],
    ),
    Entry(
        "of two topics",
        Api.OFFSET_FOR_LEADER_EPOCH,
        {
            "replica_id": -1,
            "topics": [{"topic": each, "partitions": [{"partition": 0, "leader_epoch": 0}]} for each in (T, U)],
        },
        **_two(DESCRIBE),
    ),
    Entry(
        "of two topics",
        Api.DELETE_RECORDS,
        {"timeout": 5_000, "topics": _named(T, U, partitions=[{"partition_index": 0, "offset": 0}])},
        **_two(DELETE),
        unordered=["DeleteRecords.topics"],
    ),
    Entry("of two topics", Api.DESCRIBE_PRODUCERS, {"topics": _named(T, U, partition_indexes=[0])}, **_two(READ)),
]

_TOPICS = [
    Entry("two topics", Api.METADATA, {"topics": _named(T, U), "allow_auto_topic_creation": False}, **_two(DESCRIBE)),
    Entry("all topics", Api.METADATA, {"topics": None}, **_two(DESCRIBE), versions=range(1, 14)),
    Entry("all topics in the oldest version", Api.METADATA, {"topics": []}, **_two(DESCRIBE), versions=[0]),
    Entry(
        "two topics by id",
        Api.METADATA,
        {"topics": [{"topic_id": TopicId(each), "name": None} for each in "tu"], "allow_auto_topic_creation": False},
        **_two(DESCRIBE),
        versions=range(12, 14),
    ),
    Entry(
        "what the client may do",
        Api.METADATA,
        {
            "topics": _named(T),
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        },
        [Need(READ, TOPIC, T), Need(ALTER_CONFIGS, TOPIC, T), on_cluster(ALTER)],
        versions=range(8, 14),
    ),
    Entry(
        "a topic to be created",
        Api.METADATA,
        {"topics": _named(NEW), "allow_auto_topic_creation": True},
        [Need(DESCRIBE, TOPIC, NEW), Need(CREATE, TOPIC, NEW)],
    ),
    Entry("two topics", Api.DESCRIBE_TOPIC_PARTITIONS, {"topics": _named(T, U)}, **_two(DESCRIBE)),
    Entry(
        "all topics",
        Api.DESCRIBE_TOPIC_PARTITIONS,
        {"topics": []},
        **_two(DESCRIBE),
        masks=["DescribeTopicPartitions.next_cursor"],
    ),
    Entry(
        "two topics",
        Api.CREATE_TOPICS,
        {
            "timeout": 5_000,
            "validate_only": True,
            "topics": _named(NEW, Topic("newer"), num_partitions=1, replication_factor=1, assignments=[], configs=[]),
        },
        [Need(CREATE, TOPIC, NEW), Need(CREATE, TOPIC, Topic("newer")), Need(DESCRIBE_CONFIGS, TOPIC, NEW)],
        part=[Need(CREATE, TOPIC, NEW)],
        unordered=["CreateTopics.topics"],
    ),
    Entry(
        "with the cluster's permission",
        Api.CREATE_TOPICS,
        {
            "timeout": 5_000,
            "validate_only": True,
            "topics": _named(NEW, num_partitions=1, replication_factor=1, assignments=[], configs=[]),
        },
        [on_cluster(CREATE)],
    ),
    Entry(
        "two topics",
        Api.DELETE_TOPICS,
        {"timeout": 5_000, "topic_names": [T, U], "topics": _named(T, U, topic_id=requests.ZERO_ID)},
        **_two(DELETE),
        unordered=["DeleteTopics.responses"],
    ),
    Entry(
        "a topic that may be described",
        Api.DELETE_TOPICS,
        {"timeout": 5_000, "topic_names": [T, NEW], "topics": _named(T, NEW, topic_id=requests.ZERO_ID)},
        [Need(DESCRIBE, TOPIC, T), Need(DESCRIBE, TOPIC, NEW)],
        unordered=["DeleteTopics.responses"],
    ),
    Entry(
        "by id",
        Api.DELETE_TOPICS,
        {"timeout": 5_000, "topics": [{"name": None, "topic_id": TopicId("t")}]},
        [Need(DELETE, TOPIC, T)],
        part=[Need(READ, TOPIC, T)],
        versions=[6],
        unordered=["DeleteTopics.responses"],
    ),
    Entry(
        "of two topics",
        Api.CREATE_PARTITIONS,
        {"timeout": 5_000, "validate_only": True, "topics": _named(T, U, count=2, assignments=None)},
        **_two(ALTER),
        unordered=["CreatePartitions.results"],
    ),
]

_GROUPS = [
    Entry("a group", Api.JOIN_GROUP, join(), [on_group(READ)], topics=()),
    Entry("a group", Api.SYNC_GROUP, sync("nobody"), [on_group(READ)], topics=()),
    Entry(
        "a group",
        Api.HEARTBEAT,
        {"group_id": GROUP_ID, "generation_id": 1, "member_id": "x"},
        [on_group(READ)],
        topics=(),
    ),
    Entry(
        "a group",
        Api.LEAVE_GROUP,
        {"group_id": GROUP_ID, "member_id": "x", "members": [{"member_id": "x"}]},
        [on_group(READ)],
        topics=(),
    ),
    Entry(
        "two groups",
        Api.DESCRIBE_GROUPS,
        {"groups": [GROUP_ID, OTHER_GROUP], "include_authorized_operations": True},
        [on_group(DESCRIBE), on_group(DESCRIBE, OTHER_GROUP)],
        part=[on_group(DESCRIBE)],
        given=[committed(), committed(group_id=OTHER_GROUP)],
    ),
    Entry(
        "two groups",
        Api.LIST_GROUPS,
        {},
        [on_group(DESCRIBE), on_group(DESCRIBE, OTHER_GROUP)],
        part=[on_group(DESCRIBE)],
        given=[committed(), committed(group_id=OTHER_GROUP)],
    ),
    Entry("with the cluster's permission", Api.LIST_GROUPS, {}, [on_cluster(DESCRIBE)], given=[committed()]),
    Entry(
        "two groups",
        Api.DELETE_GROUPS,
        {"groups_names": [GROUP_ID, OTHER_GROUP]},
        [on_group(DELETE), on_group(DELETE, OTHER_GROUP)],
        part=[on_group(DELETE)],
        given=[committed(), committed(group_id=OTHER_GROUP)],
    ),
    Entry(
        "two topics",
        Api.OFFSET_COMMIT,
        commit(topics=_offsets("t", "u")),
        [on_group(READ), *on_topics(READ)],
        part=[on_group(READ), Need(READ, TOPIC, T)],
    ),
    Entry(
        "two topics",
        Api.OFFSET_FETCH,
        _fetched(),
        [on_group(DESCRIBE), *on_topics(DESCRIBE)],
        part=[on_group(DESCRIBE), Need(DESCRIBE, TOPIC, T)],
        given=[committed(topics=_offsets("t", "u"))],
    ),
    Entry(
        "all topics",
        Api.OFFSET_FETCH,
        _fetched(topics=None),
        [on_group(DESCRIBE), *on_topics(DESCRIBE)],
        part=[on_group(DESCRIBE), Need(DESCRIBE, TOPIC, T)],
        given=[committed(topics=_offsets("t", "u"))],
        versions=range(2, 11),
        unordered=["OffsetFetch.topics", "OffsetFetch.groups.*.topics"],
    ),
    Entry(
        "of two groups",
        Api.OFFSET_FETCH,
        {"groups": [{"group_id": each, "topics": None} for each in (GROUP_ID, OTHER_GROUP)]},
        [on_group(DESCRIBE), on_group(DESCRIBE, OTHER_GROUP), Need(DESCRIBE, TOPIC, T)],
        part=[on_group(DESCRIBE, OTHER_GROUP), Need(DESCRIBE, TOPIC, T)],
        given=[committed(), committed(group_id=OTHER_GROUP)],
        versions=range(8, 11),
    ),
    Entry(
        "two topics",
        Api.OFFSET_DELETE,
        {"group_id": GROUP_ID, "topics": _named(T, U, partitions=[{"partition_index": 0}])},
        [on_group(DELETE), *on_topics(READ)],
        part=[on_group(DELETE), Need(READ, TOPIC, T)],
        given=[committed(topics=_offsets("t", "u"))],
    ),
    Entry(
        "joins",
        Api.CONSUMER_GROUP_HEARTBEAT,
        {
            "group_id": GROUP_ID,
            "member_id": "a",
            "member_epoch": 0,
            "rebalance_timeout": 30_000,
            "subscribed_topic_names": [T, U],
            "topic_partitions": [],
        },
        [on_group(READ), *on_topics(DESCRIBE)],
        part=[on_group(READ), Need(DESCRIBE, TOPIC, T)],
        masks=["ConsumerGroupHeartbeat.assignment"],
    ),
    Entry(
        "a group with members",
        Api.CONSUMER_GROUP_DESCRIBE,
        {"group_ids": [GROUP_ID, OTHER_GROUP], "include_authorized_operations": True},
        [on_group(DESCRIBE), on_group(DESCRIBE, OTHER_GROUP), Need(DESCRIBE, TOPIC, T)],
        part=[on_group(DESCRIBE)],
        topics=[NewTopic("t", partitions=3)],
        given=consumer(),
        masks=["ConsumerGroupDescribe.groups.*.members.*.client_host"],
    ),
]

_TRANSACTIONS = [
    Entry(
        "of a group",
        Api.FIND_COORDINATOR,
        {"key": GROUP_ID, "key_type": 0, "coordinator_keys": [GROUP_ID, OTHER_GROUP]},
        [on_group(DESCRIBE), on_group(DESCRIBE, OTHER_GROUP)],
        part=[on_group(DESCRIBE)],
        topics=(),
    ),
    Entry(
        "of a transaction",
        Api.FIND_COORDINATOR,
        {"key": ID, "key_type": 1, "coordinator_keys": [ID]},
        [on_id(DESCRIBE)],
        topics=(),
        versions=range(1, 7),
    ),
    Entry(
        "of a share group",
        Api.FIND_COORDINATOR,
        {"key_type": 2, "coordinator_keys": ["g:AAAAAAAAAAAAAAAAAAAAAQ:0"]},
        [on_cluster(CLUSTER_ACTION)],
        topics=(),
        versions=[5, 6],
        allow=False,
    ),
    Entry(
        "with a transactional id",
        Api.INIT_PRODUCER_ID,
        {"transactional_id": ID, "transaction_timeout": 60_000},
        [on_id(WRITE)],
        topics=(),
    ),
    Entry(
        "idempotent",
        Api.INIT_PRODUCER_ID,
        {"transactional_id": None, "transaction_timeout": 60_000},
        [on_cluster(IDEMPOTENT_WRITE)],
        topics=(),
    ),
    Entry(
        "idempotent, with a topic to write to",
        Api.INIT_PRODUCER_ID,
        {"transactional_id": None, "transaction_timeout": 60_000},
        [Need(WRITE, TOPIC, T)],
        topics=(),
    ),
    Entry(
        "two topics",
        Api.ADD_PARTITIONS_TO_TXN,
        _added(T, U),
        [on_id(WRITE), *on_topics(WRITE)],
        part=[on_id(WRITE), Need(WRITE, TOPIC, T)],
        given=[transactional()],
        versions=range(4),
    ),
    Entry(
        "by a broker",
        Api.ADD_PARTITIONS_TO_TXN,
        _added(T, U),
        [on_cluster(CLUSTER_ACTION)],
        part=[on_id(WRITE), *on_topics(WRITE)],
        given=[transactional()],
        versions=[4, 5],
    ),
    Entry(
        "a group",
        Api.ADD_OFFSETS_TO_TXN,
        {"transactional_id": ID, **producer(), "group_id": GROUP_ID},
        [on_id(WRITE), on_group(READ)],
        topics=(),
        given=[transactional()],
    ),
    Entry(
        "two topics",
        Api.TXN_OFFSET_COMMIT,
        {
            "transactional_id": ID,
            **producer(),
            "group_id": GROUP_ID,
            "topics": [
                {name: value for name, value in each.items() if name != "topic_id"} for each in _offsets("t", "u")
            ],
        },
        [on_id(WRITE), on_group(READ), *on_topics(READ)],
        part=[on_id(WRITE), on_group(READ), Need(READ, TOPIC, T)],
        given=[transactional()],
    ),
    Entry(
        "a transaction",
        Api.END_TXN,
        {"transactional_id": ID, **producer(), "committed": True},
        [on_id(WRITE)],
        topics=(),
        given=[transactional()],
    ),
    Entry(
        "by a broker",
        Api.WRITE_TXN_MARKERS,
        {
            "markers": [
                {
                    "producer_id": 5,
                    "producer_epoch": 0,
                    "transaction_result": False,
                    "coordinator_epoch": 0,
                    "topics": _named(NEW, partition_indexes=[0]),
                }
            ]
        },
        [on_cluster(CLUSTER_ACTION)],
        topics=(),
    ),
    Entry(
        "by an operator",
        Api.WRITE_TXN_MARKERS,
        {
            "markers": [
                {
                    "producer_id": 5,
                    "producer_epoch": 0,
                    "transaction_result": False,
                    "coordinator_epoch": 0,
                    "topics": _named(NEW, partition_indexes=[0]),
                }
            ]
        },
        [on_cluster(ALTER)],
        topics=(),
    ),
    Entry(
        "two of them",
        Api.DESCRIBE_TRANSACTIONS,
        {"transactional_ids": [ID, Own("other")]},
        [on_id(DESCRIBE), Need(DESCRIBE, TRANSACTIONAL_ID, Own("other"))],
        part=[on_id(DESCRIBE)],
        topics=(),
        given=[transactional()],
    ),
    Entry("those that may be seen", Api.LIST_TRANSACTIONS, {}, [on_id(DESCRIBE)], topics=(), given=[transactional()]),
]

_CONFIGS = [
    Entry(
        "of topics, a group, a broker and client metrics",
        Api.DESCRIBE_CONFIGS,
        {
            "resources": [
                {"resource_type": kind, "resource_name": name, "configuration_keys": ["retention.ms", "num.io.threads"]}
                for kind, name in (
                    (requests.TOPIC, T),
                    (requests.TOPIC, U),
                    (requests.BROKER, "1"),
                    (requests.GROUP, GROUP_ID),
                    (requests.CLIENT_METRICS, "s"),
                )
            ]
        },
        [*on_topics(DESCRIBE_CONFIGS), on_cluster(DESCRIBE_CONFIGS), on_group(DESCRIBE_CONFIGS)],
        part=[Need(DESCRIBE_CONFIGS, TOPIC, U)],
        unordered=["DescribeConfigs.results"],  # here in the order of the request
    ),
    Entry(
        "of topics, a group, a broker and client metrics",
        Api.ALTER_CONFIGS,
        {
            "validate_only": True,
            "resources": [
                resource(requests.TOPIC, T, setting("retention.ms", "5")),
                resource(requests.TOPIC, U, setting("retention.ms", "5")),
                resource(requests.BROKER, "1", setting("num.io.threads", "9")),
                resource(requests.GROUP, GROUP_ID, setting("consumer.session.timeout.ms", "50000")),
                resource(requests.CLIENT_METRICS, "s", setting("interval.ms", "1000")),
            ],
        },
        [*on_topics(ALTER_CONFIGS), on_cluster(ALTER_CONFIGS), on_group(ALTER_CONFIGS)],
        part=[Need(ALTER_CONFIGS, TOPIC, U)],
        unordered=["AlterConfigs.responses"],
    ),
    Entry(
        "of topics, a group, a broker, client metrics and a logger",
        Api.INCREMENTAL_ALTER_CONFIGS,
        {
            "validate_only": True,
            "resources": [
                resource(requests.TOPIC, T, setting("retention.ms", "5", 0)),
                resource(requests.TOPIC, U, setting("retention.ms", "5", 0)),
                resource(requests.BROKER, "1", setting("num.io.threads", "9", 0)),
                resource(requests.GROUP, GROUP_ID, setting("consumer.session.timeout.ms", "50000", 0)),
                resource(requests.CLIENT_METRICS, "s", setting("interval.ms", "1000", 0)),
                resource(requests.BROKER_LOGGER, "1", setting("root", "INFO", 0)),
            ],
        },
        [*on_topics(ALTER_CONFIGS), on_cluster(ALTER_CONFIGS), on_group(ALTER_CONFIGS)],
        part=[Need(ALTER_CONFIGS, TOPIC, U)],
        unordered=["IncrementalAlterConfigs.responses"],
    ),
    Entry("by name", Api.LIST_CONFIG_RESOURCES, {"resource_types": [16]}, [on_cluster(DESCRIBE_CONFIGS)], topics=()),
]

_ON_T = [{"partition_index": 0, "replicas": [1]}]
_CLUSTER = [
    Entry("of nobody", Api.DESCRIBE_ACLS, selection(principal_filter=NOBODY), [on_cluster(DESCRIBE)], topics=()),
    Entry(
        "for nobody",
        Api.CREATE_ACLS,
        {"creations": [creation(TOPIC, NEW, READ, principal=NOBODY, host="*")]},
        [on_cluster(ALTER)],
        topics=(),
    ),
    Entry(
        "of nobody",
        Api.DELETE_ACLS,
        {"filters": [selection(principal_filter=NOBODY, resource_name_filter=NEW)]},
        [on_cluster(ALTER)],
        topics=(),
    ),
    Entry("of a topic", Api.DESCRIBE_LOG_DIRS, {"topics": [{"topic": T, "partitions": [0]}]}, [on_cluster(DESCRIBE)]),
    Entry(
        "of a topic",
        Api.ELECT_LEADERS,
        {"topic_partitions": [{"topic": T, "partitions": [0]}], "timeout": 5_000},
        [on_cluster(ALTER)],
    ),
    Entry(
        "of a topic",
        Api.ALTER_PARTITION_REASSIGNMENTS,
        {"timeout": 5_000, "topics": _named(T, partitions=_ON_T)},
        [on_cluster(ALTER)],
    ),
    Entry(
        "of a topic",
        Api.LIST_PARTITION_REASSIGNMENTS,
        {"timeout": 5_000, "topics": _named(T, partition_indexes=[0])},
        [on_cluster(DESCRIBE)],
    ),
    Entry(
        "of the metadata",
        Api.DESCRIBE_QUORUM,
        {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
        [on_cluster(DESCRIBE)],
        topics=(),
        allow=False,
    ),
    Entry(
        "of nobody",
        Api.DESCRIBE_CLIENT_QUOTAS,
        {"components": [{"entity_type": "user", "match_type": 0, "match": "nobody"}], "strict": True},
        [on_cluster(DESCRIBE_CONFIGS)],
        topics=(),
    ),
    Entry(
        "what is not changed",
        Api.ALTER_CLIENT_QUOTAS,
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "nobody"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}],
                }
            ],
            "validate_only": True,
        },
        [on_cluster(ALTER_CONFIGS)],
        topics=(),
    ),
    Entry(
        "of nobody",
        Api.DESCRIBE_USER_SCRAM_CREDENTIALS,
        {"users": [{"name": "nobody"}]},
        [on_cluster(DESCRIBE)],
        topics=(),
    ),
    Entry(
        "of nobody",
        Api.ALTER_USER_SCRAM_CREDENTIALS,
        {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
        [on_cluster(ALTER)],
        topics=(),
    ),
    Entry(
        "to a directory that is not there",
        Api.ALTER_REPLICA_LOG_DIRS,
        {"dirs": [{"path": "/nowhere", "topics": [{"name": T, "partitions": [0]}]}]},
        [on_cluster(ALTER)],
    ),
    Entry("none", Api.UPDATE_FEATURES, {"feature_updates": []}, [on_cluster(ALTER)], topics=()),
    Entry("one that is not there", Api.UNREGISTER_BROKER, {"broker_id": 77}, [on_cluster(ALTER)], topics=()),
    Entry(
        "what the client may do",
        Api.DESCRIBE_CLUSTER,
        {"include_cluster_authorized_operations": True},
        [on_cluster(DESCRIBE), on_cluster(CREATE)],
        part=[on_cluster(ALTER_CONFIGS)],
        topics=(),
    ),
]

ENTRIES = [*_RECORDS, *_TOPICS, *_GROUPS, *_TRANSACTIONS, *_CONFIGS, *_CLUSTER]
SCENARIOS = [entry.scenario() for entry in ENTRIES]
