"""The differences from Apache Kafka that are known, each with its reason. docs/differences.md is written from here.

An entry names the scenarios and versions in which it shows. In each of them it must show: an entry that no longer
differs fails the test, so no excuse outlives its reason.
"""

import fnmatch
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tests.compat.responses.api import Api
from tests.compat.responses.compare import Difference
from tests.compat.responses.explained import EXPLAINED_REFUSALS, FIRST_VERSION_WITH_MESSAGES
from tests.compat.responses.later import APIS_OF_LATER
from tests.compat.responses.scenario import Scenario


@dataclass(frozen=True)
class Known:
    what: str  # a sentence for people: what differs
    reason: str  # a sentence: why
    scenarios: Sequence[str]  # slugs
    paths: Sequence[str]  # patterns over the path of a difference; each must match one
    versions: Collection[int] | None = None  # None: every version of the scenario

    def concerns(self, scenario: Scenario, version: int) -> bool:
        return scenario.slug in self.scenarios and (self.versions is None or version in self.versions)


_SHOW_APIS = ("api-versions-an-ordinary-client", "api-versions-twice-on-a-connection")
_SHOW_BROKER = ("describe-configs-this-broker", "describe-configs-this-broker-with-synonyms-and-documentation")
_OF_BROKER = "step 1: DescribeConfigs / results / 4 1 / configs"

_ON = (True,)  # by default, in Kafka
_FEATURES = (
    ("kraft.version", "There is no Raft quorum.", ()),
    ("share.version", "Share groups are not supported yet.", _ON),
    ("streams.version", "The server side of Kafka Streams groups is not supported yet.", _ON),
)

_ANNOUNCED = [
    *[
        Known(
            f"{api} is not announced.", f"{reason[0].upper()}{reason[1:]}.", _SHOW_APIS, [f"step * / api_keys / {api}"]
        )
        for api, reason in APIS_OF_LATER.items()
    ],
    *[
        Known(
            f"The feature `{feature}` is missing.",
            reason,
            _SHOW_APIS,
            [f"step * / supported_features / {feature}", *(f"step * / finalized_features / {feature}" for _ in is_on)],
            versions=[4],
        )
        for feature, reason, is_on in _FEATURES
    ],
    *[
        Known(
            f"The feature `{feature}` is also missing at version 3, where only its finalized level is reported.",
            reason,
            _SHOW_APIS,
            [f"step * / finalized_features / {feature}"],
            versions=[3],
        )
        for feature, reason, is_on in _FEATURES
        if is_on
    ],
    Known(
        "Only one level of `metadata.version` is supported, that of Kafka 4.3, so it cannot be changed.",
        "It is reported for tools that derive the Kafka version from it; metadata is not kept in Kafka's records.",
        _SHOW_APIS,
        ["step * / supported_features / metadata.version / min_version"],
        versions=(3, 4),
    ),
    Known(
        "InitProducerId is announced up to version 6; Kafka's last is 5.",
        "Prepared transactions (KIP-939), which exactly once from Spark uses, require it. "
        "`transaction.two.phase.commit.enable=false` disables it.",
        _SHOW_APIS,
        ["step * / api_keys / InitProducerId / max_version"],
    ),
]

_SETTINGS = [
    Known(
        f"`{name}` has no value.",
        "There is no KRaft controller.",
        _SHOW_BROKER,
        [f"{_OF_BROKER} / {name} / *"],
    )
    for name in ("process.roles", "controller.listener.names", "controller.quorum.voters")
]
_SETTINGS += [
    Known(
        f"`{name}` is -1 by default, not 102400.",
        "The kernel sizes a socket's buffers. Fixed sizes cost a tenth of the CPU of produce.",
        _SHOW_BROKER,
        [f"{_OF_BROKER} / {name} / *"],
    )
    for name in ("socket.send.buffer.bytes", "socket.receive.buffer.bytes")
]
_SETTINGS.append(
    Known(
        "`transaction.two.phase.commit.enable` is true by default, not false.",
        "Exactly once from Spark needs it, and must not depend on a little-known setting.",
        _SHOW_BROKER,
        [f"{_OF_BROKER} / transaction.two.phase.commit.enable / *"],
    )
)
_SETTINGS.append(
    Known(
        "There are settings that begin with `kaspar.`.",
        "They are for features that Apache Kafka does not have, or configures in other files.",
        _SHOW_BROKER,
        [f"{_OF_BROKER} / kaspar.*"],
    )
)
_SETTINGS.append(
    Known(
        "There are settings that Kafka had until 3.9: those that begin with `zookeeper.`, and "
        "`broker.id.generation.enable` and `reserved.broker.max.id`.",
        "A cluster keeps its metadata in ZooKeeper.",
        _SHOW_BROKER,
        [f"{_OF_BROKER} / {name}" for name in ("zookeeper.*", "broker.id.generation.*", "reserved.broker.max.id*")],
    )
)

_SETTINGS.append(
    Known(
        "DescribeQuorum returns the broker's client listeners, and offsets of 0; Kafka returns the listeners of "
        "its controllers, and the offsets of its metadata log.",
        "There is no Raft quorum: the controller runs inside a broker, has no separate listener, and keeps metadata "
        "in a store, not in a log.",
        ["describe-quorum-the-metadata"],
        ["step 1: DescribeQuorum / nodes / * / listeners*"],
        versions=[2],
    )
)

_QUORUM = ["describe-quorum-from-each-broker"]
_OF_QUORUM = "step * / topics / __cluster_metadata / partitions / 0"
_SETTINGS.append(
    Known(
        "DescribeQuorum of a cluster returns the controller as the only voter and the other brokers as observers; "
        "Kafka returns all its controllers as voters.",
        "There is no Raft quorum: one of the brokers is the controller, elected through ZooKeeper.",
        _QUORUM,
        [f"{_OF_QUORUM} / current_voters", f"{_OF_QUORUM} / observers"],
    )
)
_SETTINGS.append(
    Known(
        "Its nodes are only the controller, with its client listeners; Kafka returns all its controllers, with theirs.",
        "The controller runs inside a broker and has no separate listener.",
        _QUORUM,
        ["step * / nodes / *"],
        versions=[2],
    )
)

_QUOTAS = [
    Known(
        "AlterClientQuotas accepts IP addresses; Kafka also accepts host names, and resolves them.",
        "A quota that depends on a name service may differ between brokers and change over time.",
        ["alter-client-quotas-a-host-name"],
        [
            "step 1: AlterClientQuotas / entries / 0 / error_code",
            "step 1: AlterClientQuotas / entries / 0 / error_message",
        ],
    ),
]

_EXPLAINED = [
    Known(
        "A rejected partition of Produce has an error message with the reason; Kafka sends one only with some codes.",
        "It helps to find the mistake.",
        EXPLAINED_REFUSALS,
        ["step * / error_message"],
        versions=range(FIRST_VERSION_WITH_MESSAGES, Api.PRODUCE.last + 1),
    ),
    Known(
        "So does an unknown partition in DescribeProducers; Kafka sends one only with an unknown topic.",
        "It helps to find the mistake.",
        ["describe-producers-an-unknown-partition"],
        ["step 1: DescribeProducers / topics / t / partitions / * / error_message"],
    ),
]

_OF_A_CHANGED_MOVE = ["list-partition-reassignments-one-under-way-which-is-then-changed-and-cancelled"]
_CLUSTER = [
    Known(
        "DescribeCluster does not return brokers that are stopped, even where fenced brokers are requested.",
        "A broker's addresses are in ZooKeeper only while it runs.",
        ["describe-cluster-with-a-broker-that-is-stopped"],
        ["step * / brokers / 3", "step * / brokers / (order)"],
        versions=[2],
    ),
    Known(
        "A reassignment that replaces another one removes the replicas that the other was adding, and its cancellation "
        "restores the replicas that the partition had before both. Kafka keeps them: as replicas to be removed, and "
        "after a cancellation for good.",
        "A cancellation restores the original replicas (KIP-455), as it did in Kafka with ZooKeeper.",
        _OF_A_CHANGED_MOVE,
        [
            *("step * / partitions / 0 / replicas", "step * / partitions / 0 / removing_replicas"),
            *("step * / partitions / 0 / replica_nodes", "step * / partitions / 0 / leader_epoch"),
        ],
    ),
]

_NOT_THE_SERVERS_FAULT = "The request is at fault, not the server."

_BETTER_RESPONSES = [
    Known(
        "A PushTelemetry request whose metrics decompress to more than `telemetry.max.bytes` gets TELEMETRY_TOO_LARGE; "
        "Kafka checks only their compressed size.",
        "A few bytes could take gigabytes of memory.",
        ["push-telemetry-more-than-is-allowed-compressed"],
        ["step 2: PushTelemetry / error_code"],
    ),
    Known(
        "A Produce request with null records gets INVALID_RECORD; Kafka sends no response.",
        "The client would wait for a response that never comes.",
        ["produce-null-records"],
        ["step 1: Produce"],
    ),
    Known(
        "An AlterConfigs request that names a resource twice gets INVALID_REQUEST; Kafka sends no response.",
        "The client would wait for a response that never comes.",
        ["alter-configs-the-same-twice"],
        ["step 1: AlterConfigs"],
    ),
    Known(
        "A JoinGroup request that names a protocol twice gets a response; Kafka sends none at versions below 4.",
        "The client would wait for a response that never comes.",
        ["join-group-the-same-protocol-twice"],
        ["step 1: JoinGroup"],
        versions=range(4),
    ),
    Known(
        "An AddPartitionsToTxn request without transactions gets a response; Kafka sends none.",
        "The client would wait for a response that never comes.",
        ["add-partitions-to-txn-of-no-transactions"],
        ["step 1: AddPartitionsToTxn"],
    ),
    Known(
        "A topic without partitions is not in the response to AddPartitionsToTxn; in Kafka's it is.",
        "There is nothing to report about it.",
        ["add-partitions-to-txn-no-partitions"],
        ["step 1: AddPartitionsToTxn / *results*"],
    ),
    Known(
        "A batch whose records' offset deltas have a gap or do not begin at zero is rejected with INVALID_RECORD; "
        "Kafka stores it if it is not compressed.",
        "Its records would be read with the offsets of others.",
        ["produce-offset-deltas-with-a-gap", "produce-offset-deltas-that-begin-at-one"],
        ["step 1: Produce / *", "step 2: Fetch / *"],
    ),
    Known(
        "The same in a compressed batch is INVALID_RECORD; Kafka returns UNKNOWN_SERVER_ERROR.",
        "The record is at fault, not the server.",
        ["produce-offset-deltas-with-a-gap-in-gzip"],
        ["step 1: Produce / * / error_code"],
    ),
    Known(
        "A classic group whose members' assignments are not consumer assignments cannot become a consumer group, so a "
        "ConsumerGroupHeartbeat finds none: GROUP_ID_NOT_FOUND, with a message. Kafka returns UNKNOWN_SERVER_ERROR.",
        "The group is at fault, not the server.",
        ["consumer-group-heartbeat-a-group-with-a-classic-member-whose-assignment-cannot-be-read"],
        [f"step 1: ConsumerGroupHeartbeat / {field}" for field in ("error_code", "error_message")],
    ),
    Known(
        "The error for an unknown codec also has the log start offset at versions 5 and 6; Kafka's from 7 on.",
        "It is the same error.",
        ["produce-codec-5", "produce-codec-7"],
        ["step 1: Produce / * / log_start_offset"],
        versions=(5, 6),
    ),
    Known(
        "A Produce request that names a partition twice has both batches stored and acknowledged; "
        "Kafka silently drops all but the last batch.",
        "No record is lost silently.",
        ["produce-the-same-topic-twice"],
        ["step 1: Produce / responses / *", "step 2: Fetch / *"],
    ),
    Known(
        "An unknown isolation level is INVALID_REQUEST in Fetch; Kafka returns UNKNOWN_SERVER_ERROR.",
        _NOT_THE_SERVERS_FAULT,
        ["fetch-an-isolation-level-that-does-not-exist"],
        ["step 1: Fetch / *error_code"],
    ),
    Known(
        "The same in ListOffsets.",
        _NOT_THE_SERVERS_FAULT,
        ["list-offsets-an-isolation-level-that-does-not-exist"],
        ["step 1: ListOffsets / * / error_code"],
        versions=range(2, Api.LIST_OFFSETS.last + 1),
    ),
    Known(
        "A negative limit in Fetch is INVALID_REQUEST at the partition; Kafka returns UNKNOWN_SERVER_ERROR.",
        _NOT_THE_SERVERS_FAULT,
        ["fetch-a-negative-partition-limit", "fetch-a-negative-request-limit"],
        ["step 1: Fetch / responses / * / error_code"],
    ),
    Known(
        "Metadata of one topic by id and of another by name returns both; Kafka omits the one by name.",
        "Both were requested.",
        ["metadata-one-by-id-and-one-by-name"],
        ["step 1: Metadata / topics / b"],
        versions=(12, 13),
    ),
    Known(
        "Metadata by neither id nor name is INVALID_TOPIC_EXCEPTION for that topic; "
        "Kafka returns UNKNOWN_SERVER_ERROR and nothing else.",
        "The request is at fault, not the server, and its other topics are returned.",
        ["metadata-by-neither-id-nor-name"],
        ["step 1: Metadata / *"],
        versions=(12, 13),
    ),
    Known(
        "DescribeTopicPartitions of an empty name is INVALID_TOPIC_EXCEPTION for that topic; "
        "Kafka returns UNKNOWN_SERVER_ERROR for all.",
        _NOT_THE_SERVERS_FAULT,
        ["describe-topic-partitions-an-empty-name"],
        [f"step 1: DescribeTopicPartitions / topics / * / {field}" for field in ("error_code", "topic_authorized_*")],
    ),
    Known(
        "An unknown operation in IncrementalAlterConfigs is INVALID_REQUEST with a message; "
        "Kafka returns UNKNOWN_SERVER_ERROR.",
        _NOT_THE_SERVERS_FAULT,
        ["incremental-alter-configs-an-operation-that-does-not-exist"],
        ["step 1: IncrementalAlterConfigs / responses / 2 t / *"],
    ),
    Known(
        "A body with a length below minus one, or with text that is not UTF-8, closes the connection; "
        "Kafka reads the former as null and inserts a replacement character in the latter.",
        "Kaspar does not guess the meaning of malformed requests.",
        [
            "api-versions-connection-sends-an-array-length-below-minus-one",
            "api-versions-connection-sends-a-text-that-is-no-text",
        ],
        ["step 1: Metadata by hand"],
    ),
]

KNOWN: Sequence[Known] = (*_ANNOUNCED, *_SETTINGS, *_QUOTAS, *_CLUSTER, *_EXPLAINED, *_BETTER_RESPONSES)


@dataclass(frozen=True)
class Judgement:
    unexpected: list[Difference]
    stale: list[str]


def judge(found: Iterable[Difference], scenario: Scenario, version: int, known: Sequence[Known]) -> Judgement:
    """Which differences no entry explains, and which entries explain nothing."""
    patterns = [(entry, path) for entry in known if entry.concerns(scenario, version) for path in entry.paths]
    unexpected = []
    used: set[int] = set()
    for difference in found:
        matching = [n for n, (_, path) in enumerate(patterns) if fnmatch.fnmatchcase(difference.path, path)]
        used.update(matching)
        if not matching:
            unexpected.append(difference)
    stale = [f"{entry.what} ({path})" for n, (entry, path) in enumerate(patterns) if n not in used]
    return Judgement(unexpected, stale)
