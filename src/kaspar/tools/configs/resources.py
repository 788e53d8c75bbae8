"""The settings of topics, brokers, loggers of brokers, client-metrics subscriptions and groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ResourceType,
    describe_configs,
    incremental_alter_configs,
)
from kaspar.client.admin.session import Admin, accepted, raise_first
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.configs.entities import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    DEFAULT_NAME,
    GROUPS,
    TOPICS,
)

RESOURCE_TYPES: Final = {
    TOPICS: ResourceType.TOPIC,
    BROKERS: ResourceType.BROKER,
    BROKER_LOGGERS: ResourceType.BROKER_LOGGER,
    CLIENT_METRICS: ResourceType.CLIENT_METRICS,
    GROUPS: ResourceType.GROUP,
}
_DYNAMIC: Final = {
    TOPICS: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    BROKERS: ConfigSource.DYNAMIC_BROKER_CONFIG,
    CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    GROUPS: ConfigSource.DYNAMIC_GROUP_CONFIG,
}

_AT_ONCE: Final = 100
"""How many entities one request describes. There may be many thousands of topics."""


def describe_resources(admin: Admin, entity_type: str, name: str | None, *, describe_all: bool) -> None:
    """Print the settings of one entity or of all entities of a type. Without `describe_all`, only the dynamic settings.

    Raises Refused or CommandFailed."""
    if name is None:
        names = _names(admin, entity_type)
    elif describe_all or _exists(admin, entity_type, name):
        names = [name]
    else:
        print(f"The {entity_type[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for start in range(0, len(names), _AT_ONCE):
        _describe(admin, entity_type, names[start : start + _AT_ONCE], describe_all=describe_all)


def _describe(admin: Admin, entity_type: str, names: Sequence[str], *, describe_all: bool) -> None:
    resources = [ConfigResource(RESOURCE_TYPES[entity_type], each) for each in names]
    found = describe_configs(admin, resources, include_synonyms=True)
    for resource in resources:
        print(_title(entity_type, resource.name, describe_all=describe_all))
        entries = found[resource]
        if isinstance(entries, Refused):
            raise _as_kafka(entries)
        source = None if describe_all else _dynamic_source(entity_type, resource.name)
        for line in describe_entries(entries.values(), source):
            print(line)


def describe_entries(entries: Iterable[ConfigEntry], source: ConfigSource | None) -> list[str]:
    """A line for each setting that comes from this source, or for every setting if the source is None."""
    lines = []
    for each in sorted(entries, key=lambda entry: entry.name):
        if source is None or each.source is source:
            synonyms = ", ".join(f"{one.source.name}:{one.name}={_text(one.value)}" for one in each.synonyms)
            sensitive = str(each.is_sensitive).lower()
            lines.append(f"  {each.name}={_text(each.value)} sensitive={sensitive} synonyms={{{synonyms}}}")
    return lines


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _title(entity_type: str, name: str, *, describe_all: bool) -> str:
    if name == DEFAULT_NAME:
        return f"Default configs for {entity_type} in the cluster are:"
    return f"{'All' if describe_all else 'Dynamic'} configs for {entity_type[:-1]} {name} are:"


def _dynamic_source(entity_type: str, name: str) -> ConfigSource | None:
    if entity_type == BROKERS and name == DEFAULT_NAME:
        return ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return _DYNAMIC.get(entity_type)


def _exists(admin: Admin, entity_type: str, name: str) -> bool:
    if entity_type == BROKERS and name == DEFAULT_NAME:
        return True
    if name in _names(admin, entity_type):
        return True
    if entity_type == TOPICS:
        _refuse_invalid_name(admin, name)
    return entity_type == GROUPS and _groups_with_settings(admin) is None  # then it may still have settings


def _refuse_invalid_name(admin: Admin, topic: str) -> None:
    """Raise the error if a broker reports the topic's name as invalid: the brokers decide which names are valid."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = describe_configs(admin, [resource])[resource]
    if isinstance(found, Refused) and found.code is ErrorCode.INVALID_TOPIC_EXCEPTION:
        raise _as_kafka(found)


def _as_kafka(refused: Refused) -> Refused | CommandFailed:
    """Kafka's command prints only the message of an InvalidTopicException, because it is an invalid configuration."""
    return CommandFailed(refused.message) if refused.code is ErrorCode.INVALID_TOPIC_EXCEPTION else refused


def _names(admin: Admin, entity_type: str) -> list[str]:
    """The names of all entities of a type. Imports are local because a call needs at most one of them."""
    if entity_type == TOPICS:
        from kaspar.client.admin.topics import list_topics

        return list_topics(admin)
    if entity_type in (BROKERS, BROKER_LOGGERS):
        from kaspar.client.admin.cluster import describe_cluster

        defaults = [DEFAULT_NAME] if entity_type == BROKERS else []
        return [str(each.node_id) for each in describe_cluster(admin).nodes] + defaults
    return _groups(admin) if entity_type == GROUPS else _with_settings(admin, entity_type)


def _with_settings(admin: Admin, entity_type: str) -> list[str]:
    from kaspar.client.admin.config_resources import list_config_resources

    return sorted(each.name for each in list_config_resources(admin, [RESOURCE_TYPES[entity_type]]))


def _groups(admin: Admin) -> list[str]:
    """The groups that exist, and others that have settings, if the user may see these."""
    from kaspar.client.admin.groups import list_groups

    return sorted({each.group_id for each in list_groups(admin)} | set(_groups_with_settings(admin) or ()))


def _groups_with_settings(admin: Admin) -> list[str] | None:
    """The groups that have settings; None if the user may not see them."""
    try:
        return _with_settings(admin, GROUPS)
    except Refused as refused:
        if refused.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return None


def alter_resource(admin: Admin, entity_type: str, name: str, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    """Change the settings of an entity. Raises Refused or CommandFailed."""
    resource = ConfigResource(RESOURCE_TYPES[entity_type], name)
    if entity_type == BROKER_LOGGERS:
        _refuse_unknown_loggers(admin, resource, [*deleted, *added])
    changes = [
        *(ConfigChange(each, ConfigOperation.DELETE, "") for each in deleted),
        *(ConfigChange(each, ConfigOperation.SET, value) for each, value in added.items()),
    ]
    raise_first(incremental_alter_configs(admin, {resource: changes}).values())


def _refuse_unknown_loggers(admin: Admin, resource: ConfigResource, names: Sequence[str]) -> None:
    known = accepted(describe_configs(admin, [resource])[resource])
    if unknown := [name for name in names if name not in known]:
        raise CommandFailed(f"Invalid broker logger(s): {','.join(unknown)}")
