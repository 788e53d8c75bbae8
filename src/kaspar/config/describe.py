"""The effective value of each setting and where it comes from, for DescribeConfigs.

A dynamic value of one broker takes precedence over the cluster-wide one, that over the file's, that over the default.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from kaspar.base.errors import InvalidSetting
from kaspar.base.log import get_log
from kaspar.config.broker import BrokerConfig
from kaspar.config.declaration import Scope, Setting
from kaspar.config.endpoints import listener_prefix, without_listener_prefix
from kaspar.config.kinds import ConfigType
from kaspar.config.resources import ClientMetricsConfig, GroupConfig
from kaspar.config.topic import LogConfig, resolve

log = get_log(__name__)


class ConfigSource(IntEnum):
    """The source codes of a DescribeConfigs response."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting in a DescribeConfigs response. The value of a sensitive setting is always None."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    type: ConfigType
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


@dataclass(frozen=True)
class BrokerSettings:
    """The three layers of a broker's settings, and the effective configuration. `repr` shows no values: some are
    secrets."""

    static: Mapping[str, str] = field(repr=False)
    dynamic_default: Mapping[str, str] = field(repr=False)
    dynamic_broker: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, static: Mapping[str, str]) -> "BrokerSettings":
        """Create settings from a file and overrides alone. Raises InvalidSetting with a sentence."""
        settings = cls(static, {}, {})
        _ = settings.config
        return settings

    @cached_property
    def config(self) -> BrokerConfig:
        return BrokerConfig.of(self._everything)

    def listener_values(self, listener: str, mechanism: str | None = None) -> dict[str, str]:
        """The texts of all settings for one listener: a value under its prefix, `listener.name.NAME.`, takes precedence
        over the value for all listeners, and a value for one of its SASL mechanisms over both (KIP-103).
        """
        values = {**self._everything, **self.own_listener_values(listener)}
        if mechanism is not None:
            values |= self._under(f"{listener_prefix(listener)}{mechanism.lower()}.")
        return values

    def own_listener_values(self, listener: str) -> dict[str, str]:
        """The settings under the listener's prefix only, with the prefix removed."""
        return self._under(listener_prefix(listener))

    def _under(self, prefix: str) -> dict[str, str]:
        return {name[len(prefix) :]: text for name, text in self._everything.items() if name.startswith(prefix)}

    @cached_property
    def _everything(self) -> Mapping[str, str]:
        return {**self.static, **self.dynamic_default, **self.dynamic_broker}

    def with_dynamic(self, *, default: Mapping[str, str], broker: Mapping[str, str]) -> "BrokerSettings":
        """Copy these settings with other dynamic values. Invalid stored values are ignored and logged, so that a value
        stored by another release cannot keep the broker from starting."""
        changed = BrokerSettings(self.static, _usable(default), _usable(broker))
        try:
            _ = changed.config
        except InvalidSetting as problem:
            log.error("ignoring the stored dynamic settings, which contradict each other", problem=str(problem))
            return BrokerSettings(self.static, {}, {})
        return changed

    def describe_broker(self) -> list[ConfigEntry]:
        """Every setting of this broker."""
        entries = [
            self._broker_entry(declaration, per_broker=True)
            for name, declaration in BrokerConfig.declared.items()
            if not declaration.internal or name in self.dynamic_broker or name in self.dynamic_default
        ]
        return entries + list(self._undeclared())

    def describe_cluster_default(self) -> list[ConfigEntry]:
        """The settings that are set cluster-wide."""
        return [
            self._broker_entry(BrokerConfig.declared[name], per_broker=False)
            for name in self.dynamic_default
            if name in BrokerConfig.declared
        ]

    def describe_topic(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every setting of a topic with these overrides."""
        values = resolve(self.config, overrides)
        return [
            self._topic_entry(declaration, declaration.format(values[declaration.attribute]), name in overrides)
            for name, declaration in LogConfig.declared.items()
            if not declaration.internal
        ]

    def describe_group(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every setting of a group with these overrides."""
        entries = []
        for declaration in GroupConfig.declared.values():
            names = tuple(synonym.name for synonym in declaration.synonyms)
            if names:
                others = self._synonyms(names[0], names)
            else:
                others = [ConfigSynonym(declaration.name, declaration.default_text, ConfigSource.DEFAULT_CONFIG)]
            entries.append(_with_override(declaration, overrides, ConfigSource.GROUP_CONFIG, others))
        return entries

    @staticmethod
    def describe_client_metrics(overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every setting of a client-metrics subscription with these overrides."""
        return [
            _with_override(declaration, overrides, ConfigSource.CLIENT_METRICS_CONFIG, [])
            for declaration in ClientMetricsConfig.declared.values()
        ]

    def _topic_entry(self, declaration: Setting, value: str | None, is_override: bool) -> ConfigEntry:
        synonyms: list[ConfigSynonym] = []
        if is_override:
            synonyms.append(ConfigSynonym(declaration.name, value, ConfigSource.TOPIC_CONFIG))
        if declaration.synonyms:
            synonyms += self._synonyms(
                declaration.synonyms[0].name, tuple(synonym.name for synonym in declaration.synonyms)
            )
        return _entry(declaration, value, synonyms, read_only=False)

    def _broker_entry(self, declaration: Setting, *, per_broker: bool) -> ConfigEntry:
        synonyms = self._synonyms(declaration.name, SAME_MEANING.get(declaration.name, (declaration.name,)))
        if not per_broker:
            synonyms = [each for each in synonyms if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG]
        value = synonyms[0].value if synonyms else self._text(declaration)
        return _entry(declaration, value, synonyms, read_only=declaration.scope is Scope.READ_ONLY)

    def _text(self, declaration: Setting) -> str | None:
        """The text of a static setting. As in Kafka, one without a default has no value rather than an empty one."""
        return self.static.get(declaration.name, declaration.format(declaration.default) or declaration.default_text)

    def _synonyms(self, name: str, names: tuple[str, ...]) -> list[ConfigSynonym]:
        """Every value set under one of `names`, the effective one first. As in Kafka, values before the first one of
        `name` itself are left out: a default in hours is not a synonym of one in milliseconds."""
        found = list(self._values_of(names))
        while found and found[0].name != name:
            del found[0]
        return found

    def _values_of(self, names: tuple[str, ...]) -> Iterator[ConfigSynonym]:
        defaults = {name: BrokerConfig.declared[name].default_text for name in names}
        layers: tuple[tuple[Mapping[str, str | None], ConfigSource], ...] = (
            (self.dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self._static_with_node_id, ConfigSource.STATIC_BROKER_CONFIG),
            (defaults, ConfigSource.DEFAULT_CONFIG),
        )
        for values, source in layers:
            for name in names:
                if values.get(name) is not None:
                    hidden = BrokerConfig.declared[name].sensitive
                    yield ConfigSynonym(name, None if hidden else values[name], source)

    @cached_property
    def _static_with_node_id(self) -> Mapping[str, str]:
        """The static values with both node.id and broker.id, which are two names of one setting."""
        node_id = self.static.get("node.id", self.static.get("broker.id"))
        return self.static if node_id is None else {**self.static, "node.id": node_id, "broker.id": node_id}

    def _undeclared(self) -> Iterator[ConfigEntry]:
        """The settings that are not declared. Their values are not shown, since they may be passwords. The value of a
        listener's setting is shown if the setting without the prefix is declared and not sensitive.
        """
        layers = (
            (self.static, ConfigSource.STATIC_BROKER_CONFIG),
            (self.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        )
        sources = {name: source for layer, source in layers for name in layer if name not in BrokerConfig.declared}
        for name, source in sources.items():
            declaration = BrokerConfig.declared.get(without_listener_prefix(name))
            if declaration is None:
                kind, sensitive, read_only = ConfigType.UNKNOWN, True, True
            else:
                kind, sensitive = declaration.kind.code, declaration.sensitive
                read_only = declaration.scope is Scope.READ_ONLY
            value = None if sensitive else self._everything[name]
            yield ConfigEntry(
                name, value, source, read_only, sensitive, (ConfigSynonym(name, value, source),), kind, None
            )


SAME_MEANING = {
    name: tuple(synonym.name for synonym in declaration.synonyms[position:])
    for declaration in LogConfig.declared.values()
    for position, name in enumerate(synonym.name for synonym in declaration.synonyms)
}
"""The names of a broker setting and of those that apply if it is not set: milliseconds, minutes, hours."""


def _entry(declaration: Setting, value: str | None, synonyms: list[ConfigSynonym], *, read_only: bool) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return ConfigEntry(
        name=declaration.name,
        value=None if declaration.sensitive else value,
        source=source,
        read_only=read_only,
        sensitive=declaration.sensitive,
        synonyms=tuple(synonyms),
        type=declaration.kind.code,
        documentation=declaration.doc,
    )


def _with_override(
    declaration: Setting, overrides: Mapping[str, str], source: ConfigSource, others: list[ConfigSynonym]
) -> ConfigEntry:
    """Describe a setting that a resource may override."""
    synonyms = list(others)
    if declaration.name in overrides:
        value = declaration.format(declaration.parse(overrides[declaration.name]))
        synonyms.insert(0, ConfigSynonym(declaration.name, value, source))
    value = synonyms[0].value if synonyms else declaration.default_text
    return _entry(declaration, value, synonyms, read_only=False)


def _usable(values: Mapping[str, str]) -> dict[str, str]:
    usable = {}
    for name, text in values.items():
        declaration = BrokerConfig.declared.get(name)
        try:
            if declaration is not None:
                declaration.parse(text)
        except InvalidSetting as problem:
            log.error("ignoring a stored dynamic setting that is invalid", problem=str(problem))
            continue
        usable[name] = text
    return usable
