"""The APIs under comparison, with the versions that Apache Kafka 4.3 serves.

`test_answers.py` checks this table against Kafka's own ApiVersions answer, so it cannot go stale.
"""

from enum import Enum


class Api(Enum):
    PRODUCE = (0, "produce", 3, 13)  # 0 to 2 are announced for old clients, and refused
    FETCH = (1, "fetch", 4, 18)
    LIST_OFFSETS = (2, "list_offsets", 1, 11)
    METADATA = (3, "metadata", 0, 13)
    API_VERSIONS = (18, "api_versions", 0, 4)
    CREATE_TOPICS = (19, "create_topics", 2, 7)
    DELETE_TOPICS = (20, "delete_topics", 1, 6)
    DELETE_RECORDS = (21, "delete_records", 0, 2)
    INIT_PRODUCER_ID = (22, "init_producer_id", 0, 5)
    OFFSET_FOR_LEADER_EPOCH = (23, "offset_for_leader_epoch", 2, 4)
    DESCRIBE_CONFIGS = (32, "describe_configs", 1, 4)
    ALTER_CONFIGS = (33, "alter_configs", 0, 2)
    DESCRIBE_LOG_DIRS = (35, "describe_log_dirs", 1, 5)
    CREATE_PARTITIONS = (37, "create_partitions", 0, 3)
    INCREMENTAL_ALTER_CONFIGS = (44, "incremental_alter_configs", 0, 1)
    DESCRIBE_CLUSTER = (60, "describe_cluster", 0, 2)
    DESCRIBE_PRODUCERS = (61, "describe_producers", 0, 0)
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
