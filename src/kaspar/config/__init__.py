"""Settings: one declaration each, from which everything else about a setting is derived.

- `topic.LogConfig`, `broker.BrokerConfig`: the tables, typed; `resources`: groups and client metrics
- `files`: server.properties and overrides; `providers`: values kept elsewhere; `endpoints`: the addresses in settings
- `describe.BrokerSettings`: static and dynamic layers, the effective values, and DescribeConfigs
- `alterations`: incremental changes, and which settings can change while a broker runs
"""

from kaspar.config.alterations import AlterOperation, apply_operation, validate_dynamic
from kaspar.config.broker import BrokerConfig
from kaspar.config.declaration import Importance, Scope, Setting, Settings
from kaspar.config.describe import BrokerSettings, ConfigEntry, ConfigSource, ConfigSynonym
from kaspar.config.endpoints import Endpoint
from kaspar.config.files import load_settings, warnings_about
from kaspar.config.kinds import ConfigType
from kaspar.config.properties import read_properties
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
