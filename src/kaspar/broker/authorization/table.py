"""For each API the permissions that it needs, on which resources, and the response without them.

This is the only table of permissions. The request pipeline takes the guard of an API from here (wiring.py), and the
page docs/reference/permissions.md is generated from it. An API that is not here cannot be served with an authorizer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from kaspar.acls.acl import AclOperation, ResourceType
from kaspar.broker.authorization import (
    cluster,
    configs,
    delegation_tokens,
    groups,
    metadata,
    offset_fetch,
    topics,
    transactions,
)
from kaspar.broker.authorization.guards import Call, Guard, Need, need
from kaspar.broker.services import CurrentSettings
from kaspar.network.api import HandlerResult
from kaspar.protocol.api_keys import ApiKey


@dataclass(frozen=True, slots=True)
class Unguarded:
    """No guard: the API needs no permission, or checks its topics itself, as Produce and Fetch do
    (authorization/records.py).
    """

    needs: tuple[Need, ...] = ()

    def __call__(self, call: Call, request: Any) -> HandlerResult:
        return call.proceed(request)


_PRODUCE: Final = Unguarded(
    (
        need(AclOperation.WRITE, ResourceType.TOPIC),
        need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, of="transactional records"),
    )
)
_FETCH: Final = Unguarded(
    (
        need(AclOperation.READ, ResourceType.TOPIC, of="consumers"),
        replace(
            need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, of="followers"),
            denied=need(AclOperation.READ, ResourceType.TOPIC).code,
        ),
    )
)
_FOR_EVERYONE: Final = Unguarded()


def guards(settings: CurrentSettings) -> Mapping[ApiKey, Guard]:
    return MappingProxyType(
        {
            ApiKey.PRODUCE: _PRODUCE,
            ApiKey.FETCH: _FETCH,
            ApiKey.LIST_OFFSETS: topics.LIST_OFFSETS,
            ApiKey.METADATA: metadata.Metadata(settings),
            ApiKey.OFFSET_COMMIT: groups.OFFSET_COMMIT,
            ApiKey.OFFSET_FETCH: offset_fetch.OFFSET_FETCH,
            ApiKey.FIND_COORDINATOR: transactions.FIND_COORDINATOR,
            ApiKey.JOIN_GROUP: groups.JOIN_GROUP,
            ApiKey.HEARTBEAT: groups.HEARTBEAT,
            ApiKey.LEAVE_GROUP: groups.LEAVE_GROUP,
            ApiKey.SYNC_GROUP: groups.SYNC_GROUP,
            ApiKey.DESCRIBE_GROUPS: groups.DESCRIBE_GROUPS,
            ApiKey.LIST_GROUPS: groups.LIST_GROUPS,
            ApiKey.SASL_HANDSHAKE: _FOR_EVERYONE,
            ApiKey.API_VERSIONS: _FOR_EVERYONE,
            ApiKey.CREATE_TOPICS: topics.CREATE_TOPICS,
            ApiKey.DELETE_TOPICS: topics.DELETE_TOPICS,
            ApiKey.DELETE_RECORDS: topics.DELETE_RECORDS,
            ApiKey.INIT_PRODUCER_ID: transactions.INIT_PRODUCER_ID,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: topics.OFFSET_FOR_LEADER_EPOCH,
            ApiKey.ADD_PARTITIONS_TO_TXN: transactions.ADD_PARTITIONS_TO_TXN,
            ApiKey.ADD_OFFSETS_TO_TXN: transactions.ADD_OFFSETS_TO_TXN,
            ApiKey.END_TXN: transactions.END_TXN,
            ApiKey.WRITE_TXN_MARKERS: cluster.WRITE_TXN_MARKERS,
            ApiKey.TXN_OFFSET_COMMIT: transactions.TXN_OFFSET_COMMIT,
            ApiKey.DESCRIBE_ACLS: cluster.DESCRIBE_ACLS,
            ApiKey.CREATE_ACLS: cluster.CREATE_ACLS,
            ApiKey.DELETE_ACLS: cluster.DELETE_ACLS,
            ApiKey.DESCRIBE_CONFIGS: configs.DESCRIBE_CONFIGS,
            ApiKey.ALTER_CONFIGS: configs.ALTER_CONFIGS,
            ApiKey.ALTER_REPLICA_LOG_DIRS: cluster.ALTER_REPLICA_LOG_DIRS,
            ApiKey.DESCRIBE_LOG_DIRS: cluster.DESCRIBE_LOG_DIRS,
            ApiKey.SASL_AUTHENTICATE: _FOR_EVERYONE,
            ApiKey.CREATE_PARTITIONS: topics.CREATE_PARTITIONS,
            ApiKey.CREATE_DELEGATION_TOKEN: delegation_tokens.CREATE_DELEGATION_TOKEN,
            ApiKey.RENEW_DELEGATION_TOKEN: _FOR_EVERYONE,
            ApiKey.EXPIRE_DELEGATION_TOKEN: _FOR_EVERYONE,
            ApiKey.DESCRIBE_DELEGATION_TOKEN: delegation_tokens.DESCRIBE_DELEGATION_TOKEN,
            ApiKey.DELETE_GROUPS: groups.DELETE_GROUPS,
            ApiKey.ELECT_LEADERS: cluster.ELECT_LEADERS,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: cluster.ALTER_PARTITION_REASSIGNMENTS,
            ApiKey.LIST_PARTITION_REASSIGNMENTS: cluster.LIST_PARTITION_REASSIGNMENTS,
            ApiKey.OFFSET_DELETE: groups.OFFSET_DELETE,
            ApiKey.DESCRIBE_CLIENT_QUOTAS: cluster.DESCRIBE_CLIENT_QUOTAS,
            ApiKey.ALTER_CLIENT_QUOTAS: cluster.ALTER_CLIENT_QUOTAS,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: cluster.DESCRIBE_USER_SCRAM_CREDENTIALS,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: cluster.ALTER_USER_SCRAM_CREDENTIALS,
            ApiKey.DESCRIBE_QUORUM: cluster.DESCRIBE_QUORUM,
            ApiKey.UPDATE_FEATURES: cluster.UPDATE_FEATURES,
            ApiKey.DESCRIBE_CLUSTER: cluster.DESCRIBE_CLUSTER,
            ApiKey.DESCRIBE_PRODUCERS: topics.DESCRIBE_PRODUCERS,
            ApiKey.UNREGISTER_BROKER: cluster.UNREGISTER_BROKER,
            ApiKey.DESCRIBE_TRANSACTIONS: transactions.DESCRIBE_TRANSACTIONS,
            ApiKey.LIST_TRANSACTIONS: transactions.LIST_TRANSACTIONS,
            ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.CONSUMER_GROUP_DESCRIBE: groups.CONSUMER_GROUP_DESCRIBE,
            ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _FOR_EVERYONE,
            ApiKey.PUSH_TELEMETRY: _FOR_EVERYONE,
            ApiKey.LIST_CONFIG_RESOURCES: cluster.LIST_CONFIG_RESOURCES,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS: metadata.DESCRIBE_TOPIC_PARTITIONS,
            ApiKey.COMPACT_TOPICS: topics.COMPACT_TOPICS,
            ApiKey.FOLLOW_IMAGE: cluster.FOLLOW_IMAGE,
            ApiKey.SUBMIT_EVENT: cluster.SUBMIT_EVENT,
            ApiKey.WRITE_TXN_FENCES: cluster.WRITE_TXN_FENCES,
            ApiKey.MOVE_CONTROLLER: cluster.MOVE_CONTROLLER,
            ApiKey.LIST_TIMESTAMPS: topics.LIST_TIMESTAMPS,
        }
    )
