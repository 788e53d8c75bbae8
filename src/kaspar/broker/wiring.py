"""What the handler of each API is given.

A handler's module is imported when the first request for it comes, so that a start pays for nothing it does not need.
Produce and Fetch are hot and have packages of their own (produce/, fetch/).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

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
    from kaspar.broker.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeatHandler
    from kaspar.broker.security.tokens import Tokens
    from kaspar.broker.server import Broker

__all__ = ["SERVED", "handler_of", "recognizer_of", "served_with"]


# -- topics, records, settings and the cluster -------------------------------------------------------------------------


def _list_offsets(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.list_offsets import ListOffsetsHandler

    return ListOffsetsHandler(broker.partitions, broker.threads, broker.failures)


def _metadata(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.metadata import MetadataHandler

    handler = MetadataHandler(
        broker.images,
        broker.current_settings,
        broker.auto_creation,
        broker.lost_brokers,
        broker.large_requests,
        _authorized_operations(broker),
    )
    broker.images.add_listener("encoded topics", handler.image_changed)
    return handler


def _sasl_handshake(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.sasl_handshake import handle

    return handle


def _api_versions(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.api_versions import ApiVersionsHandler

    return ApiVersionsHandler(broker.images, served_with(broker.config))


def _create_topics(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.create_topics import CreateTopicsHandler

    return CreateTopicsHandler(broker.controller, broker.current_settings, broker.quotas)


def _delete_topics(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.delete_topics import DeleteTopicsHandler

    return DeleteTopicsHandler(broker.controller, broker.images, broker.quotas)


def _delete_records(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.delete_records import DeleteRecordsHandler

    return DeleteRecordsHandler(broker.partitions, broker.logs, broker.threads, broker.failures)


def _offset_for_leader_epoch(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.offset_for_leader_epoch import OffsetForLeaderEpochHandler

    return OffsetForLeaderEpochHandler(broker.partitions)


def _describe_acls(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_acls import DescribeAclsHandler, handle

    return handle if broker.access is None else DescribeAclsHandler(broker.images, broker.large_requests)


def _create_acls(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.create_acls import CreateAclsHandler, handle

    return handle if broker.access is None else CreateAclsHandler(broker.controller)


def _delete_acls(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.delete_acls import DeleteAclsHandler, handle

    return handle if broker.access is None else DeleteAclsHandler(broker.controller)


def _describe_configs(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_configs import DescribeConfigsHandler

    return DescribeConfigsHandler(broker.broker_id, broker.images, broker.current_settings)


def _alter_configs(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.alter_configs import AlterConfigsHandler

    return AlterConfigsHandler(broker.broker_id, broker.controller)


def _alter_replica_log_dirs(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.alter_replica_log_dirs import AlterReplicaLogDirsHandler

    return AlterReplicaLogDirsHandler(broker.moves)


def _describe_log_dirs(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_log_dirs import DescribeLogDirsHandler

    return DescribeLogDirsHandler(broker.partitions, broker.logs, broker.threads)


def _sasl_authenticate(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.sasl_authenticate import handle

    return handle


def _create_partitions(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.create_partitions import CreatePartitionsHandler

    return CreatePartitionsHandler(broker.controller, broker.images, broker.quotas)


def _incremental_alter_configs(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.incremental_alter_configs import IncrementalAlterConfigsHandler

    return IncrementalAlterConfigsHandler(broker.broker_id, broker.controller, broker.serve_requests)


def _describe_client_quotas(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_client_quotas import DescribeClientQuotasHandler

    return DescribeClientQuotasHandler(broker.images)


def _alter_client_quotas(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.alter_client_quotas import AlterClientQuotasHandler

    return AlterClientQuotasHandler(broker.controller)


def _elect_leaders(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.elect_leaders import ElectLeadersHandler

    return ElectLeadersHandler(broker.controller)


def _alter_partition_reassignments(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.alter_partition_reassignments import AlterPartitionReassignmentsHandler

    return AlterPartitionReassignmentsHandler(broker.controller)


def _list_partition_reassignments(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.list_partition_reassignments import ListPartitionReassignmentsHandler

    return ListPartitionReassignmentsHandler(broker.images)


def _unregister_broker(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.unregister_broker import UnregisterBrokerHandler

    return UnregisterBrokerHandler(broker.controller)


def _describe_user_scram_credentials(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_user_scram_credentials import DescribeUserScramCredentialsHandler

    return DescribeUserScramCredentialsHandler(broker.images)


def _alter_user_scram_credentials(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.alter_user_scram_credentials import AlterUserScramCredentialsHandler

    return AlterUserScramCredentialsHandler(broker.controller)


def _create_delegation_token(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.create_delegation_token import CreateDelegationTokenHandler

    return CreateDelegationTokenHandler(_tokens(broker), broker.clock)


def _renew_delegation_token(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.renew_delegation_token import RenewDelegationTokenHandler

    return RenewDelegationTokenHandler(_tokens(broker), broker.clock)


def _expire_delegation_token(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.expire_delegation_token import ExpireDelegationTokenHandler

    return ExpireDelegationTokenHandler(_tokens(broker), broker.clock)


def _describe_delegation_token(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_delegation_token import DescribeDelegationTokenHandler

    return DescribeDelegationTokenHandler(_tokens(broker))


def _tokens(broker: "Broker") -> "Tokens":
    from kaspar.broker.security.tokens import Tokens

    return Tokens(broker.current_settings, broker.images, broker.controller)


def _describe_quorum(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_quorum import DescribeQuorumHandler

    return DescribeQuorumHandler(broker.images, broker.clock)


def _update_features(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.update_features import UpdateFeaturesHandler

    return UpdateFeaturesHandler(broker.controller)


def _describe_cluster(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_cluster import DescribeClusterHandler

    return DescribeClusterHandler(broker.images, _authorized_operations(broker))


def _describe_producers(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_producers import DescribeProducersHandler

    return DescribeProducersHandler(broker.partitions, broker.large_requests)


def _list_config_resources(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.list_config_resources import ListConfigResourcesHandler

    return ListConfigResourcesHandler(broker.images)


def _get_telemetry_subscriptions(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.get_telemetry_subscriptions import GetTelemetrySubscriptionsHandler

    return GetTelemetrySubscriptionsHandler(broker.start_telemetry(), broker.current_settings)


def _push_telemetry(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.push_telemetry import PushTelemetryHandler

    return PushTelemetryHandler(broker.start_telemetry())


def _describe_topic_partitions(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_topic_partitions import DescribeTopicPartitionsHandler

    return DescribeTopicPartitionsHandler(
        broker.images, broker.current_settings, broker.large_requests, _authorized_operations(broker)
    )


def _compact_topics(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.compact_topics import CompactTopicsHandler

    return CompactTopicsHandler(broker.partitions, broker.cleaning, broker.failures)


def _list_timestamps(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.list_timestamps import ListTimestampsHandler

    return ListTimestampsHandler(broker.partitions, broker.threads, broker.failures)


def _follow_image(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.follow_image import FollowImageHandler

    return FollowImageHandler(lambda: broker.membership)


def _submit_event(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.submit_event import SubmitEventHandler

    return SubmitEventHandler(lambda: broker.membership)


def _move_controller(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.move_controller import MoveControllerHandler

    return MoveControllerHandler(lambda: broker.membership)


# -- groups and transactions -------------------------------------------------------------------------------------------


def _offset_commit(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.offset_commit import OffsetCommitHandler

    return OffsetCommitHandler(broker.groups.runtime, broker.images)


def _offset_fetch(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.offset_fetch import OffsetFetchHandler

    return OffsetFetchHandler(broker.groups.runtime, broker.images, broker.large_requests)


def _find_coordinator(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.find_coordinator import FindCoordinatorHandler

    return FindCoordinatorHandler(broker.coordinators, broker.images)


def _join_group(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.join_group import JoinGroupHandler

    return JoinGroupHandler(broker.groups.runtime, broker.current_settings, _describes_of(broker))


def _heartbeat(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.heartbeat import HeartbeatHandler

    return HeartbeatHandler(broker.groups.runtime)


def _leave_group(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.leave_group import LeaveGroupHandler

    return LeaveGroupHandler(broker.groups.runtime)


def _sync_group(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.sync_group import SyncGroupHandler

    return SyncGroupHandler(broker.groups.runtime)


def _describe_groups(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_groups import DescribeGroupsHandler

    return DescribeGroupsHandler(broker.groups.runtime, _authorized_operations(broker))


def _list_groups(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.list_groups import ListGroupsHandler

    return ListGroupsHandler(broker.groups.runtime, broker.large_requests)


def _init_producer_id(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.init_producer_id import InitProducerIdHandler

    return InitProducerIdHandler(broker.producer_ids, broker.coordinators)


def _add_partitions_to_txn(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.add_partitions_to_txn import AddPartitionsToTxnHandler

    return AddPartitionsToTxnHandler(broker.transactions, broker.images)


def _add_offsets_to_txn(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.add_offsets_to_txn import AddOffsetsToTxnHandler

    return AddOffsetsToTxnHandler(broker.transactions, lambda group_id: broker.groups.runtime.partition_of(group_id))


def _end_txn(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.end_txn import EndTxnHandler

    return EndTxnHandler(broker.transactions.runtime)


def _write_txn_markers(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.write_txn_markers import WriteTxnMarkersHandler

    return WriteTxnMarkersHandler(broker.markers.write)


def _write_txn_fences(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.write_txn_fences import WriteTxnFencesHandler

    return WriteTxnFencesHandler(broker.markers.write)


def _txn_offset_commit(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.txn_offset_commit import TxnOffsetCommitHandler

    return TxnOffsetCommitHandler(broker.groups.runtime, broker.images, broker.partitions, broker.verifier.verify)


def _delete_groups(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.delete_groups import DeleteGroupsHandler

    return DeleteGroupsHandler(broker.groups.runtime)


def _offset_delete(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.offset_delete import OffsetDeleteHandler

    return OffsetDeleteHandler(broker.groups.runtime, broker.images)


def _describe_transactions(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.describe_transactions import DescribeTransactionsHandler

    return DescribeTransactionsHandler(broker.transactions.runtime)


def _list_transactions(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.list_transactions import ListTransactionsHandler

    return ListTransactionsHandler(broker.transactions.runtime, broker.large_requests, broker.now)


def _consumer_group_heartbeat(broker: "Broker") -> "ConsumerGroupHeartbeatHandler":
    from kaspar.broker.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeatHandler

    return ConsumerGroupHeartbeatHandler(broker.groups, broker.current_settings, broker.threads, _describes_of(broker))


def _consumer_group_describe(broker: "Broker") -> Handler:
    from kaspar.broker.handlers.consumer_group_describe import ConsumerGroupDescribeHandler

    return ConsumerGroupDescribeHandler(broker.groups, _authorized_operations(broker))


# -- the table ---------------------------------------------------------------------------------------------------------

_FACTORIES: Final[Mapping[ApiKey, Callable[["Broker"], Handler]]] = MappingProxyType(
    {
        ApiKey.LIST_OFFSETS: _list_offsets,
        ApiKey.METADATA: _metadata,
        ApiKey.OFFSET_COMMIT: _offset_commit,
        ApiKey.OFFSET_FETCH: _offset_fetch,
        ApiKey.FIND_COORDINATOR: _find_coordinator,
        ApiKey.JOIN_GROUP: _join_group,
        ApiKey.HEARTBEAT: _heartbeat,
        ApiKey.LEAVE_GROUP: _leave_group,
        ApiKey.SYNC_GROUP: _sync_group,
        ApiKey.DESCRIBE_GROUPS: _describe_groups,
        ApiKey.LIST_GROUPS: _list_groups,
        ApiKey.SASL_HANDSHAKE: _sasl_handshake,
        ApiKey.API_VERSIONS: _api_versions,
        ApiKey.CREATE_TOPICS: _create_topics,
        ApiKey.DELETE_TOPICS: _delete_topics,
        ApiKey.DELETE_RECORDS: _delete_records,
        ApiKey.INIT_PRODUCER_ID: _init_producer_id,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
        ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
        ApiKey.ADD_OFFSETS_TO_TXN: _add_offsets_to_txn,
        ApiKey.END_TXN: _end_txn,
        ApiKey.WRITE_TXN_MARKERS: _write_txn_markers,
        ApiKey.TXN_OFFSET_COMMIT: _txn_offset_commit,
        ApiKey.DESCRIBE_ACLS: _describe_acls,
        ApiKey.CREATE_ACLS: _create_acls,
        ApiKey.DELETE_ACLS: _delete_acls,
        ApiKey.DESCRIBE_CONFIGS: _describe_configs,
        ApiKey.ALTER_CONFIGS: _alter_configs,
        ApiKey.ALTER_REPLICA_LOG_DIRS: _alter_replica_log_dirs,
        ApiKey.DESCRIBE_LOG_DIRS: _describe_log_dirs,
        ApiKey.SASL_AUTHENTICATE: _sasl_authenticate,
        ApiKey.CREATE_PARTITIONS: _create_partitions,
        ApiKey.DELETE_GROUPS: _delete_groups,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
        ApiKey.ELECT_LEADERS: _elect_leaders,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_partition_reassignments,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: _list_partition_reassignments,
        ApiKey.OFFSET_DELETE: _offset_delete,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _describe_user_scram_credentials,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
        ApiKey.CREATE_DELEGATION_TOKEN: _create_delegation_token,
        ApiKey.RENEW_DELEGATION_TOKEN: _renew_delegation_token,
        ApiKey.EXPIRE_DELEGATION_TOKEN: _expire_delegation_token,
        ApiKey.DESCRIBE_DELEGATION_TOKEN: _describe_delegation_token,
        ApiKey.DESCRIBE_CLIENT_QUOTAS: _describe_client_quotas,
        ApiKey.ALTER_CLIENT_QUOTAS: _alter_client_quotas,
        ApiKey.DESCRIBE_QUORUM: _describe_quorum,
        ApiKey.UPDATE_FEATURES: _update_features,
        ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
        ApiKey.DESCRIBE_PRODUCERS: _describe_producers,
        ApiKey.UNREGISTER_BROKER: _unregister_broker,
        ApiKey.DESCRIBE_TRANSACTIONS: _describe_transactions,
        ApiKey.LIST_TRANSACTIONS: _list_transactions,
        ApiKey.CONSUMER_GROUP_HEARTBEAT: _consumer_group_heartbeat,
        ApiKey.CONSUMER_GROUP_DESCRIBE: _consumer_group_describe,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _get_telemetry_subscriptions,
        ApiKey.PUSH_TELEMETRY: _push_telemetry,
        ApiKey.LIST_CONFIG_RESOURCES: _list_config_resources,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
        ApiKey.COMPACT_TOPICS: _compact_topics,
        ApiKey.FOLLOW_IMAGE: _follow_image,
        ApiKey.SUBMIT_EVENT: _submit_event,
        ApiKey.WRITE_TXN_FENCES: _write_txn_fences,
        ApiKey.MOVE_CONTROLLER: _move_controller,
        ApiKey.LIST_TIMESTAMPS: _list_timestamps,
    }
)


_BETWEEN_BROKERS: Final = frozenset({ApiKey.FOLLOW_IMAGE, ApiKey.SUBMIT_EVENT, ApiKey.WRITE_TXN_FENCES})


def handler_of(key: ApiKey, broker: "Broker") -> Handler:
    handler = _FACTORIES[key](broker)
    if broker.access is not None:
        from kaspar.broker.authorization.guards import guarded
        from kaspar.broker.authorization.table import guards

        handler = guarded(handler, guards(broker.current_settings)[key], broker.access, broker.images)
    if key in _BETWEEN_BROKERS and len(broker.listeners) > 1:
        from kaspar.broker.authorization.between_brokers import only_on

        handler = only_on(broker.network.between_brokers.listener, key, handler)
    return handler


def recognizer_of(key: ApiKey, broker: "Broker") -> Recognizer | None:
    """What makes requests of this API known by their bytes, where that is worth it."""
    if key is ApiKey.OFFSET_COMMIT:
        from kaspar.broker.coordination.known_commits import CommitRecognizer

        return CommitRecognizer(broker.images, broker.groups)
    if key is ApiKey.CONSUMER_GROUP_HEARTBEAT:
        from kaspar.broker.coordination.known_heartbeats import HeartbeatRecognizer

        return HeartbeatRecognizer(broker.groups, _describes_of(broker))
    return None


# -- the pipeline ------------------------------------------------------------------------------------------------------


def _authorized_operations(broker: "Broker") -> "AuthorizedOperations":
    if broker.access is not None:
        return broker.access
    from kaspar.broker.handlers.authorized_operations import AllOperations

    return AllOperations()


def _describes_of(broker: "Broker") -> "DescribesOf | None":
    return None if broker.access is None else broker.access.describes_of


def _permission(broker: "Broker") -> Permission:
    if broker.access is None:
        return NoAuthorizer()
    from kaspar.broker.authorization.permission import AclPermission

    return AclPermission(broker.access, broker.images)


def request_pipeline(broker: "Broker") -> Pipeline:
    """What every request of a broker passes through."""
    from kaspar.broker.handlers.api_versions import unsupported_version

    return Pipeline(
        served_with(broker.config),
        Gates(ConnectionIdentity(), _permission(broker), NoQuota()),
        produce=_produce(broker),
        fetch=_fetch(broker),
        handler_of=lambda key: handler_of(key, broker),
        recognizer_of=lambda key: recognizer_of(key, broker),
        unsupported_version=unsupported_version,
        metrics=broker.metrics.requests,
        large_requests=broker.large_requests,
    )


def _produce(broker: "Broker") -> ProduceHandler:
    access: ProduceAccess | None = None
    if broker.access is not None:
        from kaspar.broker.authorization.records import ProducePermissions

        access = ProducePermissions(broker.access, broker.images)
    services = ProduceServices(
        broker.partitions,
        broker.appender,
        UnverifiedBatches(broker.verifier, broker.appender, broker.backlog, broker.tasks, broker.clock),
        Refusals(broker.partitions, broker.images, broker.failures),
        broker.clock,
        access,
    )
    return ProduceHandler(services, broker.metrics.requests.of("Produce"), broker.large_requests)


def _fetch(broker: "Broker") -> FetchHandler:
    access: FetchAccess | None = None
    if broker.access is not None:
        from kaspar.broker.authorization.records import FetchPermissions

        access = FetchPermissions(broker.access, broker.images)
    services = FetchServices(
        broker.partitions,
        broker.images,
        broker.current_settings,
        broker.failures,
        broker.tasks,
        broker.threads.run_blocking,
        broker.large_requests,
        broker.replicas.throttles,
        access,
        broker.quotas,
    )
    return FetchHandler(services, broker.fetch_sessions, broker.metrics.requests)
