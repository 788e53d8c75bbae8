"""Which of Apache Kafka's metrics a broker has, and why it does not have the others: docs/reference/kafka-metrics.md.

DOCUMENTED has what Kafka's documentation lists for brokers, and ABSENT what is not here, with the reason. What is here
is taken from the declarations (`Family.kafka_name`), so a metric that is added leaves ABSENT or a test fails. Another
test compares both with the MBeans of a running Apache Kafka.

An MBean is written without the values of its keys, and with its attribute unless that is Value or Count, as the
declarations do: `kafka.log:type=Log,name=Size,topic=*,partition=*`.
"""

from fnmatch import fnmatchcase
from typing import Final

from kaspar.base.exposition import Kind
from kaspar.broker.metrics.catalogue import FAMILIES
from kaspar.broker.metrics.families import BrokerFamily

KAFKA_VERSION: Final = "4.3"

_TOPICS: Final = "kafka.server:type=BrokerTopicMetrics,name="
_REQUESTS: Final = "kafka.network:type=RequestMetrics,name="
_REPLICAS: Final = "kafka.server:type=ReplicaManager,name="
_GROUPS: Final = "kafka.coordinator.group:type=GroupMetadataManager,name="
_GROUP_METRICS: Final = "kafka.server:type=group-coordinator-metrics"
_CONTROLLER: Final = "kafka.controller:type=KafkaController,name="
_LOG: Final = "kafka.log:type=Log,name="
_OF_PARTITION: Final = ",topic=*,partition=*"
_QUOTA: Final = ",user=*,client-id=*"
_TIMES: Final = ("max", "p50", "p95", "p99", "p999")

DOCUMENTED: Final[dict[str, tuple[str, ...]]] = {
    "Topics": tuple(
        f"{_TOPICS}{name}PerSec"
        for name in (
            *("MessagesIn", "BytesIn", "BytesOut", "BytesRejected", "ReplicationBytesIn", "ReplicationBytesOut"),
            *("TotalProduceRequests", "TotalFetchRequests", "FailedProduceRequests", "FailedFetchRequests"),
            *("ProduceMessageConversions", "FetchMessageConversions", "NoKeyCompactedTopicRecords"),
            *("InvalidMagicNumberRecords", "InvalidMessageCrcRecords", "InvalidOffsetOrSequenceRecords"),
            *("ReassignmentBytesIn", "ReassignmentBytesOut"),
        )
    ),
    "Requests": (
        f"{_REQUESTS}RequestsPerSec,request=*,version=*",
        f"{_REQUESTS}ErrorsPerSec,request=*,error=*",
        *(
            f"{_REQUESTS}{name},request=*"
            for name in (
                *("RequestBytes", "TemporaryMemoryBytes", "MessageConversionsTimeMs", "TotalTimeMs"),
                *("RequestQueueTimeMs", "LocalTimeMs", "RemoteTimeMs", "ThrottleTimeMs"),
                *("ResponseQueueTimeMs", "ResponseSendTimeMs"),
            )
        ),
        "kafka.network:type=RequestChannel,name=RequestQueueSize",
        "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,delayedOperation=*",
        "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
        "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
        "kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount",
        "kafka.server:type=socket-server-metrics,listener=*,networkProcessor=* expired-connections-killed-count",
    ),
    "Logs": (
        "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
        "kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
        "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=*",
        "kafka.log:type=LogManager,name=remainingLogsToRecover,dir=*",
        "kafka.log:type=LogManager,name=remainingSegmentsToRecover,dir=*,threadNum=*",
        *(
            f"{_LOG}{name}{_OF_PARTITION}"
            for name in ("Size", "RetentionSizeInPercent", "NumLogSegments", "LogStartOffset", "LogEndOffset")
        ),
    ),
    "Replicas": (
        *(
            f"{_REPLICAS}{name}"
            for name in (
                *("UnderReplicatedPartitions", "UnderMinIsrPartitionCount", "AtMinIsrPartitionCount"),
                *("ProducerIdCount", "PartitionCount", "OfflineReplicaCount", "LeaderCount"),
                *("IsrShrinksPerSec", "IsrExpandsPerSec", "FailedIsrUpdatesPerSec", "ReassigningPartitions"),
            )
        ),
        "kafka.server:type=ReplicaFetcherManager,name=MaxLag,clientId=*",
        "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=*,topic=*,partition=*",
    ),
    "Quotas": (
        *(f"kafka.server:type={kind}{_QUOTA} {name}" for kind in ("Produce", "Fetch") for name in ("byte-rate",)),
        f"kafka.server:type=Request{_QUOTA} request-time",
        *(f"kafka.server:type={kind}{_QUOTA} throttle-time" for kind in ("Produce", "Fetch", "Request")),
        "kafka.server:type=Request exempt-throttle-time",
    ),
    "Group coordinator": (
        f"{_GROUP_METRICS},state=* num-partitions",
        *(f"{_GROUP_METRICS} partition-load-time-{name}" for name in ("max", "avg")),
        f"{_GROUP_METRICS} thread-idle-ratio-avg",
        f"{_GROUP_METRICS} event-queue-size",
        *(
            f"{_GROUP_METRICS} {part}-time-ms-{name}"
            for part in ("event-queue", "event-processing", "event-purgatory", "batch-linger", "batch-flush")
            for name in _TIMES
        ),
        f"{_GROUP_METRICS} batch-flush-rate",
        f"{_GROUP_METRICS},protocol=* group-count",
        *(f"{_GROUP_METRICS},state=* {kind}-group-count" for kind in ("consumer", "streams")),
        *(
            f"{_GROUP_METRICS} {what}-{name}"
            for what in (
                *("consumer-group-rebalance", "streams-group-rebalance", "group-completed-rebalance"),
                *("offset-commit", "offset-expiration", "offset-deletion"),
            )
            for name in ("rate", "count")
        ),
        *(
            f"{_GROUPS}NumGroups{state}"
            for state in ("", "PreparingRebalance", "CompletingRebalance", "Empty", "Stable", "Dead")
        ),
        f"{_GROUPS}NumOffsets",
    ),
    "Transactions": (
        *(f"kafka.server:type=transaction-coordinator-metrics partition-load-time-{name}" for name in ("max", "avg")),
        *(f"kafka.server:type=AddPartitionsToTxnManager,name=Verification{name}" for name in ("FailureRate", "TimeMs")),
    ),
    "Controller": (
        "kafka.controller:type=ControllerChannelManager,name=RequestRateAndQueueTimeMs,brokerId=*",
        *(
            f"kafka.controller:type=ControllerEventManager,name=EventQueue{name}"
            for name in ("Size", "TimeMs", "ProcessingTimeMs")
        ),
        *(
            f"kafka.controller:type=ControllerStats,name={name}"
            for name in (
                *("LeaderElectionRateAndTimeMs", "UncleanLeaderElectionsPerSec"),
                "ElectionFromEligibleLeaderReplicasPerSec",
            )
        ),
        *(
            f"{_CONTROLLER}{name}"
            for name in (
                *("ActiveControllerCount", "FencedBrokerCount", "ActiveBrokerCount", "GlobalTopicCount"),
                *("GlobalPartitionCount", "OfflinePartitionsCount", "PreferredReplicaImbalanceCount"),
                *("TopicsToDeleteCount", "ReplicasToDeleteCount"),
                *("TopicsIneligibleToDeleteCount", "ReplicasIneligibleToDeleteCount"),
                *("MetadataErrorCount", "LastAppliedRecordOffset", "LastCommittedRecordOffset"),
                *("LastAppliedRecordTimestamp", "LastAppliedRecordLagMs", "TimedOutBrokerHeartbeatCount"),
                *("EventQueueOperationsStartedCount", "EventQueueOperationsTimedOutCount"),
                "NewActiveControllersCount",
            )
        ),
    ),
    "KRaft": (
        *(
            f"kafka.server:type=raft-metrics {name}"
            for name in (
                *("current-state", "current-leader", "current-vote", "current-epoch", "high-watermark"),
                *("log-end-offset", "number-unknown-voter-connections", "commit-latency-avg", "commit-latency-max"),
                *("election-latency-avg", "election-latency-max", "fetch-records-rate", "append-records-rate"),
                "poll-idle-ratio-avg",
            )
        ),
        *(
            f"kafka.server:type=MetadataLoader,name={name}"
            for name in ("CurrentMetadataVersion", "HandleLoadSnapshotCount")
        ),
        *(f"kafka.server:type=SnapshotEmitter,name=LatestSnapshotGenerated{name}" for name in ("Bytes", "AgeMs")),
        *(
            f"kafka.server:type=broker-metadata-metrics {name}"
            for name in (
                *("last-applied-record-offset", "last-applied-record-timestamp", "last-applied-record-lag-ms"),
                *("metadata-load-error-count", "metadata-apply-error-count"),
            )
        ),
    ),
    "Tiered storage": (
        *(
            f"{_TOPICS}{name}"
            for name in (
                *(
                    f"Remote{what}{part}PerSec"
                    for what in ("Fetch", "Copy")
                    for part in ("Bytes", "Requests", "Errors")
                ),
                *(f"RemoteDelete{part}PerSec" for part in ("Requests", "Errors")),
                *(f"Remote{what}Lag{part}" for what in ("Copy", "Delete") for part in ("Bytes", "Segments")),
                *(f"BuildRemoteLogAuxState{part}PerSec" for part in ("Requests", "Errors")),
                *("RemoteLogSizeComputationTime", "RemoteLogSizeBytes", "RemoteLogMetadataCount"),
            )
        ),
        "kafka.server:type=DelayedRemoteFetchMetrics,name=ExpiresPerSec",
        "kafka.server:type=DelayedRemoteListOffsetsMetrics,name=ExpiresPerSec",
        *(
            f"org.apache.kafka.storage.internals.log:type=RemoteStorageThreadPool,name=RemoteLogReader{name}"
            for name in ("TaskQueueSize", "AvgIdlePercent")
        ),
        *(
            f"kafka.log.remote:type=RemoteLogManager,name={name}"
            for name in ("RemoteLogManagerTasksAvgIdlePercent", "RemoteLogReaderFetchRateAndTimeMs")
        ),
        *(
            f"kafka.server:type=RemoteLogManager remote-{what}-throttle-time-{name}"
            for what in ("fetch", "copy")
            for name in ("avg", "max")
        ),
    ),
    "Clients": ("kafka.consumer:type=consumer-fetch-manager-metrics,client-id=* records-lag-max",),
}
"""By the parts of the page. What producers, consumers, Connect and Streams publish of themselves is not a broker's."""

ABSENT: Final[dict[str, tuple[str, ...]]] = {
    "It is documented, but Apache Kafka 4 does not have it any more.": (
        "kafka.controller:type=ControllerChannelManager,*",
        "kafka.controller:type=ControllerEventManager,name=EventQueueSize",
        "kafka.controller:type=ControllerStats,name=LeaderElectionRateAndTimeMs",
        *(f"{_CONTROLLER}{what}{name}" for what in ("Topics", "Replicas") for name in ("ToDelete*", "IneligibleTo*")),
    ),
    "There is no Raft quorum and no metadata log: the metadata is in the embedded store or in ZooKeeper.": (
        "kafka.server:type=raft-metrics *",
        "kafka.server:type=MetadataLoader,*",
        "kafka.server:type=SnapshotEmitter,*",
        "kafka.server:type=BrokerMetadataListener,*",
        "kafka.server:type=broker-metadata-metrics *",
        "kafka.server:type=node-metrics,*",
        f"{_CONTROLLER}Last*Record*",
        f"{_CONTROLLER}IgnoredStaticVoters",
    ),
    "There is no tiered storage.": (
        f"{_TOPICS}Remote*",
        f"{_TOPICS}BuildRemote*",
        "kafka.server:type=DelayedRemote*",
        "kafka.server:type=RemoteLogManager*",
        "kafka.log.remote:*",
        "org.apache.kafka.storage.internals.log:type=RemoteStorageThreadPool,*",
    ),
    "There are no share groups and no streams groups.": (
        "*:type=share-coordinator-metrics*",
        "kafka.server:type=Share*",
        f"{_TOPICS}*Share*",
        f"{_GROUP_METRICS}*share-group*",
        f"{_GROUP_METRICS}*streams-group*",
        "kafka.server:type=Persister-channel-metrics *",
    ),
    "There is no such queue or pool of threads: one event loop does this work when it comes.": (
        f"{_GROUP_METRICS} event-*",
        f"{_GROUP_METRICS} batch-*",
        f"{_GROUP_METRICS} background-*",
        "kafka.controller:type=ControllerEventManager,name=AvgIdleRatio",
        f"{_CONTROLLER}EventQueueOperationsTimedOutCount",
        "kafka.network:type=Acceptor,*",
        "kafka.network:type=Processor,*",
        "kafka.network:type=RequestChannel,name=ResponseQueueSize,processor=*",
        "kafka.server:type=KafkaRequestHandlerPool,name=BrokerRequest*",
        "kafka.server:type=KafkaRequestHandlerPool,name=ControllerRequest*",
        "kafka.server:type=*,name=DeadThreadCount,*",
        "kafka.server:type=* queue-size",
        "kafka.server:type=socket-server-metrics MemoryPool*",
        "*type=AssignmentsManager,*",
        "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name=LogAppendRetryQueueSize",
    ),
    "Prometheus computes it from a counter that is there.": (
        f"{_GROUP_METRICS} *-rate",
        "kafka.server:type=client-metrics *-rate",
        *(
            f"kafka.server:type=socket-server-metrics* connection-{name}-rate"
            for name in ("accept", "close", "creation")
        ),
        "kafka.server:type=socket-server-metrics broker-connection-accept-rate",
    ),
    "Of a network client or selector of Kafka's own; requests and their bytes are counted by API.": (
        "kafka.server:type=*-channel-metrics *",
        *(
            f"kafka.server:type=socket-server-metrics,listener=*,networkProcessor=* {name}-*"
            for name in ("incoming", "io", "network", "outgoing", "request", "response", "select")
        ),
        "kafka.server:type=ForwardingManager *",
        *(
            f"kafka.server:type={name}-metrics,BrokerId=* *"
            for name in ("alter-partition", "directory-assignments", "forwarding", "heartbeat", "registration")
        ),
    ),
    "Brokers are known to be up by their session with the metadata store, not by heartbeats.": (
        f"{_CONTROLLER}TimedOutBrokerHeartbeatCount",
        f"{_CONTROLLER}TimeSinceLastHeartbeatReceivedMs,broker=*",
        f"{_CONTROLLER}BrokerRegistrationState,broker=*",
    ),
    "The page is served once the logs are loaded; until then the log reports the progress.": (
        "kafka.log:type=LogManager,name=remaining*",
    ),
    "It is not measured apart: rebuilding a batch is part of its request's remote time.": (
        f"{_REQUESTS}TemporaryMemoryBytes,request=*",
        f"{_REQUESTS}MessageConversionsTimeMs,request=*",
    ),
    "It is not measured: what is exempt from a quota is not timed.": ("kafka.server:type=Request exempt-*",),
    "Clients publish it, and may push it to the broker (KIP-714).": ("kafka.consumer:*",),
    "Another metric has it: errors of REQUEST_TIMED_OUT, bytes that the cleaner read, the time of a throttle.": (
        "kafka.server:type=Delayed*Metrics,name=ExpiresPerSec*",
        "kafka.utils:type=Throttler,name=cleaner-io",
        "kafka.server:type=socket-server-metrics,listener=* *connection-accept-throttle-time",
        "kafka.server:type=ReplicaAlterLogDirsManager,name=MinFetchRate,clientId=*",
        "kafka.server:type=ReplicaAlterLogDirsManager,name=FailedPartitionsCount,clientId=*",
    ),
    "Log directories cannot be cordoned.": ("kafka.log:type=LogManager,name=*Cordoned*",),
    "It is about Java's process and its metrics, or not a number; `kaspar_info` has the version.": (
        "kafka.server:type=app-info*",
        "kafka.server:type=*,name=ClusterId",
        "kafka.server:type=*,name=yammer-metrics-count",
        "kafka.server:type=kafka-metrics-count *",
        "kafka.server:type=ControllerServer,*",
        "kafka:type=kafka.Log4jController *",
        "kafka.server:type=socket-server-metrics,clientSoftwareName=*",
    ),
}
"""Patterns of what is not here, by the reason."""


def families_by_mbean() -> dict[str, BrokerFamily]:
    """The first family of each MBean that has one here."""
    named: dict[str, BrokerFamily] = {}
    for family in FAMILIES:
        if family.kafka_name:
            named.setdefault(normalised(family.kafka_name), family)
    return named


def families_of(mbean: str) -> list[BrokerFamily]:
    """All that have its numbers: some have several names, and some families have those of several MBeans."""
    return [family for family in FAMILIES if family.kafka_name and fnmatchcase(mbean, normalised(family.kafka_name))]


def normalised(mbean: str) -> str:
    """The MBean without values of keys, except those that name it, and without the topic that a metric may have."""
    domain, _, rest = mbean.partition(":")
    keys, _, attribute = rest.partition(" ")
    parts = (key.partition("=") for key in keys.split(","))
    written = ",".join(f"{key}={value if key in ('type', 'name') else '*'}" for key, _, value in parts)
    written = written.removesuffix(",topic=*") if written.startswith("type=BrokerTopicMetrics") else written
    return f"{domain}:{written}" + (f" {attribute}" if attribute else "")


def why_absent(mbean: str) -> str | None:
    return next(
        (reason for reason, patterns in ABSENT.items() if any(fnmatchcase(mbean, pattern) for pattern in patterns)),
        None,
    )


def kafka_metrics_page() -> str:
    here = families_by_mbean()
    documented = {mbean for mbeans in DOCUMENTED.values() for mbean in mbeans}
    present = sum(mbean in here for mbean in documented)
    lines = [
        "# Kafka's metrics",
        "",
        "Written by `scripts/kafka_metrics.py` from the declarations in `src/kaspar/broker/metrics/`.",
        "",
        f"Which of the metrics that Apache Kafka {KAFKA_VERSION} documents for brokers a broker has, under which name "
        f"([metrics](metrics.md) says what each is), and why it does not have the others. Of {len(documented)} it has "
        f"{present}. The names are those of the JMX exporter's rules for Kafka (`kafka-2_0_0.yml`); of what these "
        "rules leave out, those of the rules that Strimzi uses.",
    ]
    for title, mbeans in DOCUMENTED.items():
        lines += ["", f"## {title}", "", "| in Apache Kafka | here |", "|---|---|"]
        lines += [f"| `{mbean}` | {_status(mbean)} |" for mbean in mbeans]
    lines += ["", "## Not documented", "", "Brokers of Apache Kafka have more. Of these, a broker has here:", ""]
    lines += ["| in Apache Kafka | here |", "|---|---|"]
    lines += [
        f"| `{mbean}` | {_status(mbean)} |"
        for mbean in sorted(here)
        if not any(fnmatchcase(each, mbean) for each in documented)
    ]
    lines += ["", "And not:", "", "| in Apache Kafka | why not |", "|---|---|"]
    lines += [
        f"| `{pattern}` | {reason} |"
        for reason, patterns in ABSENT.items()
        for pattern in patterns
        if not any(fnmatchcase(mbean, pattern) for mbean in documented)
    ]
    return "\n".join(lines) + "\n"


def _status(mbean: str) -> str:
    named = [
        f"`{family.name}`" + (" with quantiles" if family.kind is Kind.SUMMARY else "") for family in families_of(mbean)
    ]
    return ", ".join(named) or f"No. {why_absent(mbean)}"
