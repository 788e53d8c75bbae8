"""One module for each API, and the table that says which APIs are served, at which versions.

A module has `handle(broker, context, request) -> response`, plain or async. It is imported when the first request for
it comes, so that a start pays for nothing it does not need. What ApiVersions announces is this table (`served_with`),
but for the APIs that are Kaspar's own: no client of Kafka's would know what to make of them.
"""

import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kaspar.config import BrokerConfig
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


class PartlyEncoded(NamedTuple):
    """A response some of whose arrays are encoded already (by field name): what is large and rarely changes."""

    message: Message
    encoded: Mapping[str, Sequence[bytes]]
    error_counts: Mapping[int, int]
    """The error codes in what is encoded, and how often each occurs."""


Response = Message | PartlyEncoded
Answer = Response | Awaitable[Response]
"""What a handler returns: the response, or what to await for it."""

Handler = Callable[["Broker", "RequestContext", Any], Answer]


class RequestContext(NamedTuple):
    """Who asks, and in which words: what a handler may need to know beyond the request itself."""

    api_key: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    peer: str
    listener: str


@dataclass(frozen=True, slots=True)
class ServedApi:
    key: ApiKey
    first_version: int
    last_version: int
    module: str

    def load(self) -> Handler:
        handler: Handler = importlib.import_module(f"{__name__}.{self.module}").handle
        return handler


SERVED: dict[int, ServedApi] = {
    api.key: api
    for api in (
        ServedApi(ApiKey.PRODUCE, 3, 13, "produce"),
        ServedApi(ApiKey.FETCH, 4, 18, "fetch"),
        ServedApi(ApiKey.LIST_OFFSETS, 1, 11, "list_offsets"),
        ServedApi(ApiKey.METADATA, 0, 13, "metadata"),
        ServedApi(ApiKey.OFFSET_COMMIT, 2, 10, "offset_commit"),
        ServedApi(ApiKey.OFFSET_FETCH, 1, 10, "offset_fetch"),
        ServedApi(ApiKey.FIND_COORDINATOR, 0, 6, "find_coordinator"),
        ServedApi(ApiKey.JOIN_GROUP, 0, 9, "join_group"),
        ServedApi(ApiKey.HEARTBEAT, 0, 4, "heartbeat"),
        ServedApi(ApiKey.LEAVE_GROUP, 0, 5, "leave_group"),
        ServedApi(ApiKey.SYNC_GROUP, 0, 5, "sync_group"),
        ServedApi(ApiKey.DESCRIBE_GROUPS, 0, 6, "describe_groups"),
        ServedApi(ApiKey.LIST_GROUPS, 0, 5, "list_groups"),
        ServedApi(ApiKey.SASL_HANDSHAKE, 0, 1, "sasl_handshake"),
        ServedApi(ApiKey.API_VERSIONS, 0, 4, "api_versions"),
        ServedApi(ApiKey.CREATE_TOPICS, 2, 7, "create_topics"),
        ServedApi(ApiKey.DELETE_TOPICS, 1, 6, "delete_topics"),
        ServedApi(ApiKey.DELETE_RECORDS, 0, 2, "delete_records"),
        ServedApi(ApiKey.INIT_PRODUCER_ID, 0, 5, "init_producer_id"),
        ServedApi(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, "offset_for_leader_epoch"),
        ServedApi(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, "add_partitions_to_txn"),
        ServedApi(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, "add_offsets_to_txn"),
        ServedApi(ApiKey.END_TXN, 0, 5, "end_txn"),
        ServedApi(ApiKey.WRITE_TXN_MARKERS, 1, 2, "write_txn_markers"),
        ServedApi(ApiKey.TXN_OFFSET_COMMIT, 0, 5, "txn_offset_commit"),
        ServedApi(ApiKey.DESCRIBE_ACLS, 1, 3, "describe_acls"),
        ServedApi(ApiKey.CREATE_ACLS, 1, 3, "create_acls"),
        ServedApi(ApiKey.DELETE_ACLS, 1, 3, "delete_acls"),
        ServedApi(ApiKey.DESCRIBE_CONFIGS, 1, 4, "describe_configs"),
        ServedApi(ApiKey.ALTER_CONFIGS, 0, 2, "alter_configs"),
        ServedApi(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, "describe_log_dirs"),
        ServedApi(ApiKey.SASL_AUTHENTICATE, 0, 2, "sasl_authenticate"),
        ServedApi(ApiKey.CREATE_PARTITIONS, 0, 3, "create_partitions"),
        ServedApi(ApiKey.DELETE_GROUPS, 0, 2, "delete_groups"),
        ServedApi(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, "incremental_alter_configs"),
        ServedApi(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, "list_partition_reassignments"),
        ServedApi(ApiKey.OFFSET_DELETE, 0, 0, "offset_delete"),
        ServedApi(ApiKey.DESCRIBE_QUORUM, 0, 2, "describe_quorum"),
        ServedApi(ApiKey.UPDATE_FEATURES, 0, 2, "update_features"),
        ServedApi(ApiKey.DESCRIBE_CLUSTER, 0, 2, "describe_cluster"),
        ServedApi(ApiKey.DESCRIBE_PRODUCERS, 0, 0, "describe_producers"),
        ServedApi(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, "describe_transactions"),
        ServedApi(ApiKey.LIST_TRANSACTIONS, 0, 2, "list_transactions"),
        ServedApi(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, "consumer_group_heartbeat"),
        ServedApi(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, "consumer_group_describe"),
        ServedApi(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, "list_config_resources"),
        ServedApi(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, "describe_topic_partitions"),
        ServedApi(ApiKey.COMPACT_TOPICS, 0, 0, "compact_topics"),
    )
}

_WITH_TWO_PHASE_COMMIT = (ServedApi(ApiKey.INIT_PRODUCER_ID, 0, 6, "init_producer_id"),)


def served_with(config: BrokerConfig) -> dict[int, ServedApi]:
    """The table, with the versions that only some settings bring: KIP-939's is not one that Kafka serves yet."""
    if not config.transaction_two_phase_commit_enable:
        return SERVED
    return SERVED | {api.key: api for api in _WITH_TWO_PHASE_COMMIT}
