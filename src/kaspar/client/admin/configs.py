"""Describes the settings of topics, brokers, groups and other resources, and changes single ones (KIP-226, KIP-339)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kaspar.base.errors import Refused
from kaspar.client.admin.session import Admin, common_code, refusal
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_OF_ONE_BROKER = frozenset({ResourceType.BROKER, ResourceType.BROKER_LOGGER})


class ConfigSource(IntEnum):
    """Where a value was set, with the names of Kafka's ConfigEntry.ConfigSource."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    type: ResourceType
    name: str
    """For a broker its id, or empty for the default of all brokers."""


class ConfigChange(NamedTuple):
    name: str
    operation: ConfigOperation
    value: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """One of the values of a setting. The first applies: the topic's, then the broker's, then that of all brokers."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    """None for sensitive values, which brokers do not return."""
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None


def describe_configs(
    admin: Admin,
    resources: Collection[ConfigResource],
    *,
    names: Collection[str] | None = None,
    include_synonyms: bool = False,
    include_documentation: bool = False,
) -> dict[ConfigResource, dict[str, ConfigEntry] | Refused]:
    """The settings of each resource with these names, or all (None), including those with default values; or an error.
    Names that a kind of resource does not have are omitted."""
    keys = None if names is None else tuple(names)
    found: dict[ConfigResource, dict[str, ConfigEntry] | Refused] = {}
    for node, together in _by_node(resources, _OF_ONE_BROKER).items():
        request = DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(resource_type=each.type, resource_name=each.name, configuration_keys=keys)
                for each in together
            ),
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )
        if node is None:
            response = admin.ask_any("describeConfigs", request, DescribeConfigsResponse, at_controllers=True)
        else:
            response = admin.ask_broker("describeConfigs", node, request, DescribeConfigsResponse)
        for result in response.results:
            found[ConfigResource(ResourceType(result.resource_type), result.resource_name)] = refusal(
                result.error_code, result.error_message
            ) or {each.name: _entry(each) for each in result.configs}
    return found


def _entry(result: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        result.name,
        result.value,
        config_source(result.config_source),
        result.is_sensitive,
        result.read_only,
        tuple(ConfigSynonym(each.name, each.value, config_source(each.source)) for each in result.synonyms),
        result.documentation,
    )


def config_source(code: int) -> ConfigSource:
    """The ConfigSource of a code; UNKNOWN for a code of a newer version of Kafka."""
    try:
        return ConfigSource(code)
    except ValueError:
        return ConfigSource.UNKNOWN


def incremental_alter_configs(
    admin: Admin, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
) -> dict[ConfigResource, Refused]:
    """Change settings. Returns the resources that were refused."""
    refused: dict[ConfigResource, Refused] = {}
    # Controllers store the settings of all brokers, but each node has its own loggers.
    types = {ResourceType.BROKER_LOGGER} if admin.via_controllers else _OF_ONE_BROKER
    for node, resources in _by_node(changes, types).items():
        request = IncrementalAlterConfigsRequest(
            resources=tuple(
                AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=tuple(
                        AlterableConfig(name=each.name, config_operation=each.operation, value=each.value)
                        for each in changes[resource]
                    ),
                )
                for resource in resources
            ),
            validate_only=validate_only,
        )
        try:
            response = _send(admin, node, request)
        except Refused as failure:  # this node did not respond, but others may
            refused.update(dict.fromkeys(resources, failure))
            continue
        for each in response.responses:
            if (problem := refusal(each.error_code, each.error_message)) is not None:
                refused[ConfigResource(ResourceType(each.resource_type), each.resource_name)] = problem
    return refused


def _send(admin: Admin, node: int | None, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    def code_of(response: IncrementalAlterConfigsResponse) -> int:
        return common_code(each.error_code for each in response.responses)

    call = "incrementalAlterConfigs"
    if node is None:
        return admin.ask_any(call, request, IncrementalAlterConfigsResponse, code_of=code_of, at_controllers=True)
    return admin.ask_broker(call, node, request, IncrementalAlterConfigsResponse, code_of=code_of)


def _by_node(
    resources: Iterable[ConfigResource], types: Collection[ResourceType]
) -> dict[int | None, list[ConfigResource]]:
    """The resources grouped by request: for these types, a broker handles only its own resources."""
    nodes: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        node = int(resource.name) if resource.type in types and resource.name else None
        nodes.setdefault(node, []).append(resource)
    return nodes
