"""Settings: one declaration each, from which everything else about a setting is derived.

- `topic.LogConfig`, `broker.BrokerConfig`: the tables, typed; `resources`: groups and client metrics
- `files`: server.properties and overrides; `endpoints`: the addresses in settings
- `describe.BrokerSettings`: static and dynamic layers, which value counts, and what DescribeConfigs tells
- `alterations`: incremental changes and which of them a running broker takes
"""

from kaspar.config.alterations import AlterOperation, apply_operation, validate_dynamic
from kaspar.config.broker import BrokerConfig
from kaspar.config.declaration import Importance, Scope, Setting, Settings
from kaspar.config.describe import BrokerSettings, ConfigEntry, ConfigSource, ConfigSynonym
from kaspar.config.endpoints import Endpoint
from kaspar.config.files import load_settings, read_properties, warnings_about
from kaspar.config.kinds import ConfigType
from kaspar.config.resources import ClientMetricsConfig, GroupConfig, validate_client_metrics, validate_group
from kaspar.config.topic import LogConfig, validate_topic_overrides

__all__ = [
    "AlterOperation",
    "BrokerConfig",
    "BrokerSettings",
    "ClientMetricsConfig",
    "ConfigEntry",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "Endpoint",
    "GroupConfig",
    "Importance",
    "LogConfig",
    "Scope",
    "Setting",
    "Settings",
    "apply_operation",
    "load_settings",
    "read_properties",
    "validate_client_metrics",
    "validate_dynamic",
    "validate_group",
    "validate_topic_overrides",
    "warnings_about",
]
