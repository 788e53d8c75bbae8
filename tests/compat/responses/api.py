"""The APIs under comparison, with the versions that Apache Kafka 4.3 serves.

`test_responses.py` checks this table against Kafka's own ApiVersions response, so it cannot go stale.
"""

from enum import Enum


class Api(Enum):
    PRODUCE = (0, "produce", 3, 13)  # 0 to 2 are announced for old clients, and refused
    FETCH = (1, "fetch", 4, 18)
    LIST_OFFSETS = (2, "list_offsets", 1, 11)
    METADATA = (3, "metadata", 0, 13)
    OFFSET_COMMIT = (8, "offset_commit", 2, 10)
    OFFSET_FETCH = (9, "offset_fetch", 1, 10)
    FIND_COORDINATOR = (10, "find_coordinator", 0, 6)
    JOIN_GROUP = (11, "join_group", 0, 9)
    HEARTBEAT = (12, "heartbeat", 0, 4)
    LEAVE_GROUP = (13, "leave_group", 0, 5)
    SYNC_GROUP = (14, "sync_group", 0, 5)
    DESCRIBE_GROUPS = (15, "describe_groups", 0, 6)
    LIST_GROUPS = (16, "list_groups", 0, 5)
    SASL_HANDSHAKE = (17, "sasl_handshake", 0, 1)
    API_VERSIONS = (18, "api_versions", 0, 4)
    CREATE_TOPICS = (19, "create_topics", 2, 7)
    DELETE_TOPICS = (20, "delete_topics", 1, 6)
    DELETE_RECORDS = (21, "delete_records", 0, 2)
    INIT_PRODUCER_ID = (22, "init_producer_id", 0, 5)
    OFFSET_FOR_LEADER_EPOCH = (23, "offset_for_leader_epoch", 2, 4)
    ADD_PARTITIONS_TO_TXN = (24, "add_partitions_to_txn", 0, 5)
    ADD_OFFSETS_TO_TXN = (25, "add_offsets_to_txn", 0, 4)
    END_TXN = (26, "end_txn", 0, 5)
    WRITE_TXN_MARKERS = (27, "write_txn_markers", 1, 2)
    TXN_OFFSET_COMMIT = (28, "txn_offset_commit", 0, 5)
    DESCRIBE_ACLS = (29, "describe_acls", 1, 3)
    CREATE_ACLS = (30, "create_acls", 1, 3)
    DELETE_ACLS = (31, "delete_acls", 1, 3)
    DESCRIBE_CONFIGS = (32, "describe_configs", 1, 4)
    ALTER_CONFIGS = (33, "alter_configs", 0, 2)
    ALTER_REPLICA_LOG_DIRS = (34, "alter_replica_log_dirs", 1, 2)
    DESCRIBE_LOG_DIRS = (35, "describe_log_dirs", 1, 5)
    SASL_AUTHENTICATE = (36, "sasl_authenticate", 0, 2)
    CREATE_PARTITIONS = (37, "create_partitions", 0, 3)
    CREATE_DELEGATION_TOKEN = (38, "create_delegation_token", 1, 3)
    RENEW_DELEGATION_TOKEN = (39, "renew_delegation_token", 1, 2)
    EXPIRE_DELEGATION_TOKEN = (40, "expire_delegation_token", 1, 2)
    DESCRIBE_DELEGATION_TOKEN = (41, "describe_delegation_token", 1, 3)
    DELETE_GROUPS = (42, "delete_groups", 0, 2)
    ELECT_LEADERS = (43, "elect_leaders", 0, 2)
    INCREMENTAL_ALTER_CONFIGS = (44, "incremental_alter_configs", 0, 1)
    ALTER_PARTITION_REASSIGNMENTS = (45, "alter_partition_reassignments", 0, 1)
    LIST_PARTITION_REASSIGNMENTS = (46, "list_partition_reassignments", 0, 0)
    OFFSET_DELETE = (47, "offset_delete", 0, 0)
    DESCRIBE_CLIENT_QUOTAS = (48, "describe_client_quotas", 0, 1)
    ALTER_CLIENT_QUOTAS = (49, "alter_client_quotas", 0, 1)
    DESCRIBE_USER_SCRAM_CREDENTIALS = (50, "describe_user_scram_credentials", 0, 0)
    ALTER_USER_SCRAM_CREDENTIALS = (51, "alter_user_scram_credentials", 0, 0)
    DESCRIBE_QUORUM = (55, "describe_quorum", 0, 2)
    UPDATE_FEATURES = (57, "update_features", 0, 2)
    DESCRIBE_CLUSTER = (60, "describe_cluster", 0, 2)
    DESCRIBE_PRODUCERS = (61, "describe_producers", 0, 0)
    UNREGISTER_BROKER = (64, "unregister_broker", 0, 0)
    DESCRIBE_TRANSACTIONS = (65, "describe_transactions", 0, 0)
    LIST_TRANSACTIONS = (66, "list_transactions", 0, 2)
    CONSUMER_GROUP_HEARTBEAT = (68, "consumer_group_heartbeat", 0, 1)
    CONSUMER_GROUP_DESCRIBE = (69, "consumer_group_describe", 0, 1)
    GET_TELEMETRY_SUBSCRIPTIONS = (71, "get_telemetry_subscriptions", 0, 0)
    PUSH_TELEMETRY = (72, "push_telemetry", 0, 0)
    LIST_CONFIG_RESOURCES = (74, "list_config_resources", 0, 1)
    DESCRIBE_TOPIC_PARTITIONS = (75, "describe_topic_partitions", 0, 0)

    def __init__(self, key: int, schema: str, first: int, last: int) -> None:
        self.key = key
        self.schema = schema  # kio's name of it
        self.first = first
        self.last = last

    @property
    def title(self) -> str:
        """Kafka's name of the API: ListOffsets."""
        return title(self.schema)

    @property
    def versions(self) -> range:
        return range(self.first, self.last + 1)


def title(schema: str) -> str:
    return "".join(word.capitalize() for word in schema.split("_"))
