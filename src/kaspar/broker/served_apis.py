"""The served APIs and their versions. ApiVersions announces this table (`served_with`), except for Kaspar's own APIs,
which no Kafka client knows.
"""

from kaspar.config import BrokerConfig
from kaspar.network.api import ServedApi
from kaspar.protocol.api_keys import ApiKey

SERVED: dict[int, ServedApi] = {
    api.key: api
    for api in (
        ServedApi(ApiKey.PRODUCE, 3, 13),
        ServedApi(ApiKey.FETCH, 4, 18),
        ServedApi(ApiKey.LIST_OFFSETS, 1, 11),
        ServedApi(ApiKey.METADATA, 0, 13),
        ServedApi(ApiKey.OFFSET_COMMIT, 2, 10),
        ServedApi(ApiKey.OFFSET_FETCH, 1, 10),
        ServedApi(ApiKey.FIND_COORDINATOR, 0, 6),
        ServedApi(ApiKey.JOIN_GROUP, 0, 9),
        ServedApi(ApiKey.HEARTBEAT, 0, 4),
        ServedApi(ApiKey.LEAVE_GROUP, 0, 5),
        ServedApi(ApiKey.SYNC_GROUP, 0, 5),
        ServedApi(ApiKey.DESCRIBE_GROUPS, 0, 6),
        ServedApi(ApiKey.LIST_GROUPS, 0, 5),
        ServedApi(ApiKey.SASL_HANDSHAKE, 0, 1),
        ServedApi(ApiKey.API_VERSIONS, 0, 4),
        ServedApi(ApiKey.CREATE_TOPICS, 2, 7),
        ServedApi(ApiKey.DELETE_TOPICS, 1, 6),
        ServedApi(ApiKey.DELETE_RECORDS, 0, 2),
        ServedApi(ApiKey.INIT_PRODUCER_ID, 0, 5),
        ServedApi(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4),
        ServedApi(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5),
        ServedApi(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4),
        ServedApi(ApiKey.END_TXN, 0, 5),
        ServedApi(ApiKey.WRITE_TXN_MARKERS, 1, 2),
        ServedApi(ApiKey.TXN_OFFSET_COMMIT, 0, 5),
        ServedApi(ApiKey.DESCRIBE_ACLS, 1, 3),
        ServedApi(ApiKey.CREATE_ACLS, 1, 3),
        ServedApi(ApiKey.DELETE_ACLS, 1, 3),
        ServedApi(ApiKey.DESCRIBE_CONFIGS, 1, 4),
        ServedApi(ApiKey.ALTER_CONFIGS, 0, 2),
        ServedApi(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2),
        ServedApi(ApiKey.DESCRIBE_LOG_DIRS, 1, 5),
        ServedApi(ApiKey.SASL_AUTHENTICATE, 0, 2),
        ServedApi(ApiKey.CREATE_PARTITIONS, 0, 3),
        ServedApi(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3),
        ServedApi(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2),
        ServedApi(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2),
        ServedApi(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3),
        ServedApi(ApiKey.DELETE_GROUPS, 0, 2),
        ServedApi(ApiKey.ELECT_LEADERS, 0, 2),
        ServedApi(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1),
        ServedApi(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1),
        ServedApi(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0),
        ServedApi(ApiKey.OFFSET_DELETE, 0, 0),
        ServedApi(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1),
        ServedApi(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1),
        ServedApi(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0),
        ServedApi(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0),
        ServedApi(ApiKey.DESCRIBE_QUORUM, 0, 2),
        ServedApi(ApiKey.UPDATE_FEATURES, 0, 2),
        ServedApi(ApiKey.DESCRIBE_CLUSTER, 0, 2),
        ServedApi(ApiKey.DESCRIBE_PRODUCERS, 0, 0),
        ServedApi(ApiKey.UNREGISTER_BROKER, 0, 0),
        ServedApi(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0),
        ServedApi(ApiKey.LIST_TRANSACTIONS, 0, 2),
        ServedApi(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1),
        ServedApi(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1),
        ServedApi(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0),
        ServedApi(ApiKey.PUSH_TELEMETRY, 0, 0),
        ServedApi(ApiKey.LIST_CONFIG_RESOURCES, 0, 1),
        ServedApi(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0),
        ServedApi(ApiKey.COMPACT_TOPICS, 0, 0),
        ServedApi(ApiKey.FOLLOW_IMAGE, 0, 0),
        ServedApi(ApiKey.SUBMIT_EVENT, 0, 0),
        ServedApi(ApiKey.WRITE_TXN_FENCES, 0, 0),
        ServedApi(ApiKey.MOVE_CONTROLLER, 0, 0),
        ServedApi(ApiKey.LIST_TIMESTAMPS, 0, 0),
    )
}

_WITH_TWO_PHASE_COMMIT = (ServedApi(ApiKey.INIT_PRODUCER_ID, 0, 6),)


def served_with(config: BrokerConfig) -> dict[int, ServedApi]:
    """The table, with the versions that depend on settings: KIP-939, which Kafka does not serve yet."""
    if not config.transaction_two_phase_commit_enable:
        return SERVED
    return SERVED | {api.key: api for api in _WITH_TWO_PHASE_COMMIT}
