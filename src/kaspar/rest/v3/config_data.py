"""The settings of topics and brokers, as resources and as requests."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from kaspar.client.admin.configs import ConfigChange, ConfigEntry, ConfigOperation, ConfigSource
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.resources import Resource, ResourceList


class ConfigSynonymData(msgspec.Struct):
    name: str
    value: str | None
    source: str


class ConfigData(Resource, kw_only=True):
    cluster_id: str
    name: str
    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    source: str
    synonyms: list[ConfigSynonymData]


class TopicConfigData(ConfigData, kw_only=True):
    kind: str = "KafkaTopicConfig"
    topic_name: str


class TopicConfigDataList(ResourceList, kw_only=True):
    kind: str = "KafkaTopicConfigList"
    data: list[TopicConfigData]


class BrokerConfigData(ConfigData, kw_only=True):
    kind: str = "KafkaBrokerConfig"
    broker_id: int


class BrokerConfigDataList(ResourceList, kw_only=True):
    kind: str = "KafkaBrokerConfigList"
    data: list[BrokerConfigData]


class ClusterConfigData(ConfigData, kw_only=True):
    kind: str = "KafkaClusterConfig"
    config_type: str = "BROKER"


class ClusterConfigDataList(ResourceList, kw_only=True):
    kind: str = "KafkaClusterConfigList"
    data: list[ClusterConfigData]


def topic_config(names: ResourceNames, topic: str, entry: ConfigEntry) -> TopicConfigData:
    metadata = names.one("topics", topic, "configs", entry.name, crn=(("topic", topic), ("config", entry.name)))
    return TopicConfigData(metadata=metadata, topic_name=topic, **_fields(names, entry))


def broker_config(names: ResourceNames, broker_id: str, entry: ConfigEntry) -> BrokerConfigData:
    crn = (("broker", broker_id), ("config", entry.name))
    metadata = names.one("brokers", broker_id, "configs", entry.name, crn=crn)
    return BrokerConfigData(metadata=metadata, broker_id=int(broker_id), **_fields(names, entry))


def cluster_config(names: ResourceNames, nobody: str, entry: ConfigEntry) -> ClusterConfigData:
    metadata = names.one("broker-configs", entry.name, crn=(("broker-config", entry.name),))
    return ClusterConfigData(metadata=metadata, **_fields(names, entry))


def in_order(entries: Mapping[str, ConfigEntry]) -> list[ConfigEntry]:
    return [entries[name] for name in sorted(entries)]


def _fields(names: ResourceNames, entry: ConfigEntry) -> dict[str, Any]:
    return {
        "cluster_id": names.cluster_id,
        "name": entry.name,
        "value": entry.value,
        "is_default": entry.source is ConfigSource.DEFAULT_CONFIG,
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
        "source": entry.source.name,
        "synonyms": [ConfigSynonymData(each.name, each.value, each.source.name) for each in entry.synonyms],
    }


# --- Requests ---------------------------------------------------------------------------------------------------------


class UpdateConfigRequest(msgspec.Struct, forbid_unknown_fields=True):
    value: str | None = None


class AlterEntry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str | None = None
    operation: Literal["SET", "DELETE"] | None = None
    """None means SET."""


class AlterConfigsRequest(msgspec.Struct, forbid_unknown_fields=True):
    data: list[AlterEntry]
    validate_only: bool | None = None


class TopicAlterEntry(msgspec.Struct, forbid_unknown_fields=True):
    topic_name: str
    configs: list[AlterEntry]


class AlterTopicsConfigsRequest(msgspec.Struct, forbid_unknown_fields=True):
    data: list[TopicAlterEntry]
    validate_only: bool | None = None


class TopicFailure(msgspec.Struct):
    topic_name: str
    error_code: int
    message: str


class AlterTopicsConfigsResponse(msgspec.Struct):
    failures: list[TopicFailure]


def changes_of(entries: Iterable[AlterEntry]) -> list[ConfigChange]:
    return [
        ConfigChange(each.name, ConfigOperation.DELETE)
        if each.operation == "DELETE"
        else ConfigChange(each.name, ConfigOperation.SET, each.value)
        for each in entries
    ]
