"""Settings of brokers and topics, limited to those that a check reads."""

from collections.abc import Iterable, Sequence
from typing import Final

from kaspar.base.errors import Refused
from kaspar.client.admin.configs import ConfigEntry, ConfigResource, ResourceType, describe_configs
from kaspar.client.admin.session import Admin, accepted
from kaspar.monitor.doctor.observation import Missing, Settings
from kaspar.monitor.doctor.observing.parts import Parts, sentence_of

BROKER_SETTINGS: Final = (
    "advertised.listeners",
    "allow.everyone.if.no.acl.found",
    "authorizer.class.name",
    "auto.create.topics.enable",
    "default.replication.factor",
    "listener.security.protocol.map",
    "listeners",
    "min.insync.replicas",
    "offsets.topic.replication.factor",
    "transaction.max.timeout.ms",
    "transaction.state.log.replication.factor",
    "unclean.leader.election.enable",
)
TOPIC_SETTINGS: Final = (
    "cleanup.policy",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
    "unclean.leader.election.enable",
)
_TOPICS_AT_ONCE: Final = 1000


def look_at_brokers_settings(admin: Admin, brokers: Iterable[int], parts: Parts) -> dict[int, Settings]:
    return parts.read_each("settings", brokers, lambda broker_id: _broker_settings(admin, broker_id))


def _broker_settings(admin: Admin, broker_id: int) -> Settings:
    resource = ConfigResource(ResourceType.BROKER, str(broker_id))
    return _values(accepted(describe_configs(admin, [resource], names=BROKER_SETTINGS)[resource]))


def look_at_topics_settings(admin: Admin, topics: Sequence[str], parts: Parts) -> dict[str, Settings]:
    found: dict[str, Settings] = {}
    refused: list[Refused] = []
    for start in range(0, len(topics), _TOPICS_AT_ONCE):
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics[start : start + _TOPICS_AT_ONCE]]
        for resource, entries in describe_configs(admin, resources, names=TOPIC_SETTINGS).items():
            if isinstance(entries, Refused):
                refused.append(entries)
            else:
                found[resource.name] = _values(entries)
    if refused:
        parts.missing.append(Missing(f"settings of {len(refused)} topics", sentence_of(refused[0])))
    return found


def _values(entries: dict[str, ConfigEntry]) -> Settings:
    return {name: entry.value or "" for name, entry in entries.items() if not entry.is_sensitive}
