"""Creates the handler of each API with what it needs.

A handler's module is imported at the first request for it, so that a start loads only what it needs. Produce and Fetch
are hot and have their own packages (produce/, fetch/). `b` stands for the parts of the broker.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from kaspar.broker import handlers
from kaspar.broker.fetch.handler import FetchHandler
from kaspar.broker.fetch.services import FetchAccess, FetchServices
from kaspar.broker.produce.handler import ProduceHandler
from kaspar.broker.produce.results import Refusals
from kaspar.broker.produce.services import ProduceAccess, ProduceServices
from kaspar.broker.produce.unverified import UnverifiedBatches
from kaspar.broker.served_apis import SERVED, served_with
from kaspar.network.api import Handler
from kaspar.network.gates import ConnectionIdentity, Gates, NoAuthorizer, NoQuota, Permission
from kaspar.network.pipeline import Pipeline
from kaspar.network.recognition import Recognizer
from kaspar.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kaspar.broker.coordination.clients import DescribesOf
    from kaspar.broker.handlers.authorized_operations import AuthorizedOperations
    from kaspar.broker.parts import Parts
    from kaspar.broker.security.tokens import Tokens

__all__ = ["SERVED", "handler_of", "recognizer_of", "served_with"]


# -- handlers ----------------------------------------------------------------------------------------------------------


def _metadata(b: "Parts") -> Handler:
    handler = handlers.metadata.MetadataHandler(
        b.images, b.current_settings, b.auto_creation, b.lost_brokers, b.large_requests, _authorized_operations(b)
    )
    b.images.add_listener("encoded topics", handler.image_changed)
    return handler


def _tokens(b: "Parts") -> "Tokens":
    from kaspar.broker.security.tokens import Tokens

    return Tokens(b.current_settings, b.images, b.controller)


_FACTORIES: Final[Mapping[ApiKey, Callable[["Parts"], Handler]]] = MappingProxyType(
    {
        ApiKey.LIST_OFFSETS: lambda b: handlers.list_offsets.ListOffsetsHandler(b.partitions, b.threads, b.failures),
        ApiKey.METADATA: _metadata,
        ApiKey.OFFSET_COMMIT: lambda b: handlers.offset_commit.OffsetCommitHandler(b.groups.runtime, b.images),
        ApiKey.OFFSET_FETCH: lambda b: handlers.offset_fetch.OffsetFetchHandler(
            b.groups.runtime, b.images, b.large_requests
        ),
        ApiKey.FIND_COORDINATOR: lambda b: handlers.find_coordinator.FindCoordinatorHandler(b.coordinators, b.images),
        ApiKey.JOIN_GROUP: lambda b: handlers.join_group.JoinGroupHandler(
            b.groups.runtime, b.current_settings, _describes_of(b)
        ),
        ApiKey.HEARTBEAT: lambda b: handlers.heartbeat.HeartbeatHandler(b.groups.runtime),
        ApiKey.LEAVE_GROUP: lambda b: handlers.leave_group.LeaveGroupHandler(b.groups.runtime),
        ApiKey.SYNC_GROUP: lambda b: handlers.sync_group.SyncGroupHandler(b.groups.runtime),
        ApiKey.DESCRIBE_GROUPS: lambda b: handlers.describe_groups.DescribeGroupsHandler(
            b.groups.runtime, _authorized_operations(b)
        ),
        ApiKey.LIST_GROUPS: lambda b: handlers.list_groups.ListGroupsHandler(b.groups.runtime, b.large_requests),
        ApiKey.SASL_HANDSHAKE: lambda b: handlers.sasl_handshake.handle,
        ApiKey.API_VERSIONS: lambda b: handlers.api_versions.ApiVersionsHandler(b.images, served_with(b.config)),
        ApiKey.CREATE_TOPICS: lambda b: handlers.create_topics.CreateTopicsHandler(
            b.controller, b.current_settings, b.quotas
        ),
        ApiKey.DELETE_TOPICS: lambda b: handlers.delete_topics.DeleteTopicsHandler(b.controller, b.images, b.quotas),
        ApiKey.DELETE_RECORDS: lambda b: handlers.delete_records.DeleteRecordsHandler(
            b.partitions, b.logs, b.threads, b.failures
        ),
        ApiKey.INIT_PRODUCER_ID: lambda b: handlers.init_producer_id.InitProducerIdHandler(
            b.producer_ids, b.coordinators
        ),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda b: handlers.offset_for_leader_epoch.OffsetForLeaderEpochHandler(
            b.partitions
        ),
        ApiKey.ADD_PARTITIONS_TO_TXN: lambda b: handlers.add_partitions_to_txn.AddPartitionsToTxnHandler(
            b.transactions, b.images
        ),
        ApiKey.ADD_OFFSETS_TO_TXN: lambda b: handlers.add_offsets_to_txn.AddOffsetsToTxnHandler(
            b.transactions, lambda group_id: b.groups.runtime.partition_of(group_id)
        ),
        ApiKey.END_TXN: lambda b: handlers.end_txn.EndTxnHandler(b.transactions.runtime),
        ApiKey.WRITE_TXN_MARKERS: lambda b: handlers.write_txn_markers.WriteTxnMarkersHandler(b.markers.write),
        ApiKey.TXN_OFFSET_COMMIT: lambda b: handlers.txn_offset_commit.TxnOffsetCommitHandler(
            b.groups.runtime, b.images, b.partitions, b.verifier.verify
        ),
        ApiKey.DESCRIBE_ACLS: lambda b: (
            handlers.describe_acls.handle
            if b.access is None
            else handlers.describe_acls.DescribeAclsHandler(b.images, b.large_requests)
        ),
        ApiKey.CREATE_ACLS: lambda b: (
            handlers.create_acls.handle if b.access is None else handlers.create_acls.CreateAclsHandler(b.controller)
        ),
        ApiKey.DELETE_ACLS: lambda b: (
            handlers.delete_acls.handle if b.access is None else handlers.delete_acls.DeleteAclsHandler(b.controller)
        ),
        ApiKey.DESCRIBE_CONFIGS: lambda b: handlers.describe_configs.DescribeConfigsHandler(
            b.broker_id, b.images, b.current_settings
        ),
        ApiKey.ALTER_CONFIGS: lambda b: handlers.alter_configs.AlterConfigsHandler(b.broker_id, b.controller),
        ApiKey.ALTER_REPLICA_LOG_DIRS: lambda b: handlers.alter_replica_log_dirs.AlterReplicaLogDirsHandler(b.moves),
        ApiKey.DESCRIBE_LOG_DIRS: lambda b: handlers.describe_log_dirs.DescribeLogDirsHandler(
            b.partitions, b.logs, b.threads
        ),
        ApiKey.SASL_AUTHENTICATE: lambda b: handlers.sasl_authenticate.handle,
        ApiKey.CREATE_PARTITIONS: lambda b: handlers.create_partitions.CreatePartitionsHandler(
            b.controller, b.images, b.quotas
        ),
        ApiKey.DELETE_GROUPS: lambda b: handlers.delete_groups.DeleteGroupsHandler(b.groups.runtime),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda b: handlers.incremental_alter_configs.IncrementalAlterConfigsHandler(
            b.broker_id, b.controller, b.request_path.choose
        ),
        ApiKey.ELECT_LEADERS: lambda b: handlers.elect_leaders.ElectLeadersHandler(b.controller),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda b: (
            handlers.alter_partition_reassignments.AlterPartitionReassignmentsHandler(b.controller)
        ),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda b: (
            handlers.list_partition_reassignments.ListPartitionReassignmentsHandler(b.images)
        ),
        ApiKey.OFFSET_DELETE: lambda b: handlers.offset_delete.OffsetDeleteHandler(b.groups.runtime, b.images),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda b: (
            handlers.describe_user_scram_credentials.DescribeUserScramCredentialsHandler(b.images)
        ),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda b: (
            handlers.alter_user_scram_credentials.AlterUserScramCredentialsHandler(b.controller)
        ),
        ApiKey.CREATE_DELEGATION_TOKEN: lambda b: handlers.create_delegation_token.CreateDelegationTokenHandler(
            _tokens(b), b.clock
        ),
        ApiKey.RENEW_DELEGATION_TOKEN: lambda b: handlers.renew_delegation_token.RenewDelegationTokenHandler(
            _tokens(b), b.clock
        ),
        ApiKey.EXPIRE_DELEGATION_TOKEN: lambda b: handlers.expire_delegation_token.ExpireDelegationTokenHandler(
            _tokens(b), b.clock
        ),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda b: handlers.describe_delegation_token.DescribeDelegationTokenHandler(
            _tokens(b)
        ),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda b: handlers.describe_client_quotas.DescribeClientQuotasHandler(b.images),
        ApiKey.ALTER_CLIENT_QUOTAS: lambda b: handlers.alter_client_quotas.AlterClientQuotasHandler(b.controller),
        ApiKey.DESCRIBE_QUORUM: lambda b: handlers.describe_quorum.DescribeQuorumHandler(b.images, b.clock),
        ApiKey.UPDATE_FEATURES: lambda b: handlers.update_features.UpdateFeaturesHandler(b.controller),
        ApiKey.DESCRIBE_CLUSTER: lambda b: handlers.describe_cluster.DescribeClusterHandler(
            b.images, _authorized_operations(b)
        ),
        ApiKey.DESCRIBE_PRODUCERS: lambda b: handlers.describe_producers.DescribeProducersHandler(
            b.partitions, b.large_requests
        ),
        ApiKey.UNREGISTER_BROKER: lambda b: handlers.unregister_broker.UnregisterBrokerHandler(b.controller),
        ApiKey.DESCRIBE_TRANSACTIONS: lambda b: handlers.describe_transactions.DescribeTransactionsHandler(
            b.transactions.runtime
        ),
        ApiKey.LIST_TRANSACTIONS: lambda b: handlers.list_transactions.ListTransactionsHandler(
            b.transactions.runtime, b.large_requests, b.now
        ),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: lambda b: handlers.consumer_group_heartbeat.ConsumerGroupHeartbeatHandler(
            b.groups, b.current_settings, b.threads, _describes_of(b)
        ),
        ApiKey.CONSUMER_GROUP_DESCRIBE: lambda b: handlers.consumer_group_describe.ConsumerGroupDescribeHandler(
            b.groups, _authorized_operations(b)
        ),
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: lambda b: (
            handlers.get_telemetry_subscriptions.GetTelemetrySubscriptionsHandler(
                b.start_telemetry(), b.current_settings
            )
        ),
        ApiKey.PUSH_TELEMETRY: lambda b: handlers.push_telemetry.PushTelemetryHandler(b.start_telemetry()),
        ApiKey.LIST_CONFIG_RESOURCES: lambda b: handlers.list_config_resources.ListConfigResourcesHandler(b.images),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda b: handlers.describe_topic_partitions.DescribeTopicPartitionsHandler(
            b.images, b.current_settings, b.large_requests, _authorized_operations(b)
        ),
        ApiKey.COMPACT_TOPICS: lambda b: handlers.compact_topics.CompactTopicsHandler(
            b.partitions, b.cleaning, b.failures
        ),
        ApiKey.FOLLOW_IMAGE: lambda b: handlers.follow_image.FollowImageHandler(lambda: b.membership),
        ApiKey.SUBMIT_EVENT: lambda b: handlers.submit_event.SubmitEventHandler(lambda: b.membership),
        ApiKey.WRITE_TXN_FENCES: lambda b: handlers.write_txn_fences.WriteTxnFencesHandler(b.markers.write),
        ApiKey.MOVE_CONTROLLER: lambda b: handlers.move_controller.MoveControllerHandler(lambda: b.membership),
        ApiKey.LIST_TIMESTAMPS: lambda b: handlers.list_timestamps.ListTimestampsHandler(
            b.partitions, b.threads, b.failures
        ),
    }
)


_BETWEEN_BROKERS: Final = frozenset({ApiKey.FOLLOW_IMAGE, ApiKey.SUBMIT_EVENT, ApiKey.WRITE_TXN_FENCES})


def handler_of(key: ApiKey, b: "Parts") -> Handler:
    handler = _FACTORIES[key](b)
    if b.access is not None:
        from kaspar.broker.authorization.guards import guarded
        from kaspar.broker.authorization.table import guards

        handler = guarded(handler, guards(b.current_settings)[key], b.access, b.images)
    if key in _BETWEEN_BROKERS and len(b.listeners) > 1:
        from kaspar.broker.authorization.between_brokers import only_on

        handler = only_on(b.network.between_brokers.listener, key, handler)
    return handler


def recognizer_of(key: ApiKey, b: "Parts") -> Recognizer | None:
    """What recognizes requests of this API by their bytes; None for APIs where this does not pay off."""
    if key is ApiKey.OFFSET_COMMIT:
        from kaspar.broker.coordination.known_commits import CommitRecognizer

        return CommitRecognizer(b.images, b.groups)
    if key is ApiKey.CONSUMER_GROUP_HEARTBEAT:
        from kaspar.broker.coordination.known_heartbeats import HeartbeatRecognizer

        return HeartbeatRecognizer(b.groups, _describes_of(b))
    return None


# -- the pipeline ------------------------------------------------------------------------------------------------------


def _authorized_operations(b: "Parts") -> "AuthorizedOperations":
    if b.access is not None:
        return b.access
    return handlers.authorized_operations.AllOperations()


def _describes_of(b: "Parts") -> "DescribesOf | None":
    return None if b.access is None else b.access.describes_of


def _permission(b: "Parts") -> Permission:
    if b.access is None:
        return NoAuthorizer()
    from kaspar.broker.authorization.permission import AclPermission

    return AclPermission(b.access, b.images)


def request_pipeline(b: "Parts") -> Pipeline:
    """The pipeline that every request to a broker passes through."""
    return Pipeline(
        served_with(b.config),
        Gates(ConnectionIdentity(), _permission(b), NoQuota()),
        produce=_produce(b),
        fetch=_fetch(b),
        handler_of=lambda key: handler_of(key, b),
        recognizer_of=lambda key: recognizer_of(key, b),
        unsupported_version=handlers.api_versions.unsupported_version,
        metrics=b.metrics.requests,
        large_requests=b.large_requests,
    )


def _produce(b: "Parts") -> ProduceHandler:
    access: ProduceAccess | None = None
    if b.access is not None:
        from kaspar.broker.authorization.records import ProducePermissions

        access = ProducePermissions(b.access, b.images)
    services = ProduceServices(
        b.partitions,
        b.appender,
        UnverifiedBatches(b.verifier, b.appender, b.backlog, b.tasks, b.clock),
        Refusals(b.partitions, b.images, b.failures),
        b.clock,
        access,
    )
    return ProduceHandler(services, b.metrics.requests.of("Produce"), b.large_requests)


def _fetch(b: "Parts") -> FetchHandler:
    access: FetchAccess | None = None
    if b.access is not None:
        from kaspar.broker.authorization.records import FetchPermissions

        access = FetchPermissions(b.access, b.images)
    services = FetchServices(
        b.partitions,
        b.images,
        b.current_settings,
        b.failures,
        b.tasks,
        b.threads.run_blocking,
        b.large_requests,
        b.replicas.throttles,
        access,
        b.quotas,
    )
    return FetchHandler(services, b.fetch_sessions, b.metrics.requests)
