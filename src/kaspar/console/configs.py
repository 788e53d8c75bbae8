"""Shows and changes settings of topics, brokers and loggers (Kafka's configs), with their sources and documentation."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kaspar.client.admin.cluster import describe_cluster
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
from kaspar.client.admin.session import Admin, accepted
from kaspar.console.problems import NotThere, Unacceptable

_OWN_SOURCES: Final = {
    ResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ResourceType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ResourceType.BROKER_LOGGER: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
}
_MOST_CHANGES: Final = 100


@dataclass(frozen=True, slots=True)
class OtherValue:
    """A value that applies if those with higher precedence are removed."""

    name: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class ConfigView:
    name: str
    value: str | None
    """None if there is no value, or if it is sensitive."""
    source: str
    """Kafka's name: DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG ..."""
    is_own: bool
    """Whether the value was set on this resource, and can therefore be reset."""
    is_sensitive: bool
    is_read_only: bool
    documentation: str | None
    others: tuple[OtherValue, ...]


@dataclass(frozen=True, slots=True)
class ConfigChanges:
    """Changes of settings, as the page sends them."""

    set: Mapping[str, str] = field(default_factory=dict)
    reset: tuple[str, ...] = ()
    """The names of settings whose own value is removed."""

    def __str__(self) -> str:
        """The names only, for the audit log, which must not contain secrets."""
        return ", ".join([*(f"set {name}" for name in self.set), *(f"reset {name}" for name in self.reset)])


def topic_resource(name: str) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, name)


def broker_resource(broker: str) -> ConfigResource:
    """The resource of a broker id; `default` stands for all brokers. Raises NotThere."""
    return ConfigResource(ResourceType.BROKER, "" if broker == "default" else _broker_id(broker))


def logger_resource(broker: str) -> ConfigResource:
    """The resource of a broker's loggers. Raises NotThere."""
    return ConfigResource(ResourceType.BROKER_LOGGER, _broker_id(broker))


def _broker_id(text: str) -> str:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10):
        raise NotThere(f"There is no broker {text}.")
    return text


def read_configs(admin: Admin, resource: ConfigResource) -> tuple[ConfigView, ...]:
    """The settings of a resource, sorted by name. Raises Refused."""
    if not resource.name:
        return _read_defaults(admin, resource)
    described = describe_configs(admin, [resource], include_synonyms=True, include_documentation=True)
    entries = accepted(described[resource])
    return tuple(_view(entries[name], _OWN_SOURCES[resource.type]) for name in sorted(entries))


def _read_defaults(admin: Admin, resource: ConfigResource) -> tuple[ConfigView, ...]:
    """The settings of all brokers. A broker describes only those of them that are set, so the others that can be set
    are taken from one broker, without the values that are set on it alone."""
    one = ConfigResource(ResourceType.BROKER, str(describe_cluster(admin).nodes[0].node_id))
    described = describe_configs(admin, [resource, one], include_synonyms=True, include_documentation=True)
    entries = {
        entry.name: _without_own_value(entry) for entry in accepted(described[one]).values() if not entry.is_read_only
    }
    for name, entry in accepted(described[resource]).items():
        below = entries[name].synonyms if name in entries else ()
        shared = [each for each in below if each.source is not ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG]
        entries[name] = replace(entry, synonyms=(*entry.synonyms[:1], *shared))
    return tuple(_view(entries[name], ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG) for name in sorted(entries))


def _without_own_value(entry: ConfigEntry) -> ConfigEntry:
    synonyms = tuple(each for each in entry.synonyms if each.source is not ConfigSource.DYNAMIC_BROKER_CONFIG)
    if not synonyms:
        return replace(entry, value=None, source=ConfigSource.DEFAULT_CONFIG, synonyms=())
    return replace(entry, value=synonyms[0].value, source=synonyms[0].source, synonyms=synonyms)


def _view(entry: ConfigEntry, own: ConfigSource) -> ConfigView:
    return ConfigView(
        entry.name,
        entry.value,
        entry.source.name,
        entry.source is own,
        entry.is_sensitive,
        entry.is_read_only,
        entry.documentation,
        tuple(OtherValue(each.name, each.value, each.source.name) for each in entry.synonyms[1:]),
    )


def change_configs(admin: Admin, resource: ConfigResource, changes: ConfigChanges) -> None:
    """Make all of these changes, or none. Raises Refused and Unacceptable."""
    if not 0 < len(changes.set) + len(changes.reset) <= _MOST_CHANGES:
        raise Unacceptable(f"From 1 to {_MOST_CHANGES} settings can be changed at once.")
    if both := set(changes.set) & set(changes.reset):
        raise Unacceptable(f"{', '.join(sorted(both))} cannot be both set and reset.")
    operations = [ConfigChange(name, ConfigOperation.SET, value) for name, value in changes.set.items()]
    operations += [ConfigChange(name, ConfigOperation.DELETE) for name in changes.reset]
    if (refused := incremental_alter_configs(admin, {resource: operations}).get(resource)) is not None:
        raise refused
