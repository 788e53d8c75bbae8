"""The settings of topics and brokers: described, and changed one by one (KIP-339)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kaspar.base.errors import Refused
from kaspar.client.admin.session import Admin, refusal
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


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    type: ResourceType
    name: str
    """For a broker its id; empty for the default of all brokers."""


class ConfigChange(NamedTuple):
    name: str
    operation: ConfigOperation
    value: str | None = None


def describe_configs(
    admin: Admin, resources: Collection[ConfigResource]
) -> dict[ConfigResource, dict[str, DescribeConfigsResourceResult] | Refused]:
    """All settings of each resource by their names, those with a default too; or why there are none."""
    found: dict[ConfigResource, dict[str, DescribeConfigsResourceResult] | Refused] = {}
    for node, together in _by_node(admin, resources).items():
        request = DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(resource_type=each.type, resource_name=each.name, configuration_keys=None)
                for each in together
            )
        )
        if node is None:
            response = admin.ask_any("describeConfigs", request, DescribeConfigsResponse)
        else:
            response = admin.ask_broker("describeConfigs", node, request, DescribeConfigsResponse)
        for result in response.results:
            found[ConfigResource(ResourceType(result.resource_type), result.resource_name)] = refusal(
                result.error_code, result.error_message
            ) or {each.name: each for each in result.configs}
    return found


def incremental_alter_configs(
    admin: Admin, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
) -> dict[ConfigResource, Refused]:
    """Change settings. Returns the resources that were refused."""
    refused: dict[ConfigResource, Refused] = {}
    for node, resources in _by_node(admin, changes).items():
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
        except Refused as failure:  # that node did not respond; the others may
            refused.update(dict.fromkeys(resources, failure))
            continue
        for each in response.responses:
            if (problem := refusal(each.error_code, each.error_message)) is not None:
                refused[ConfigResource(ResourceType(each.resource_type), each.resource_name)] = problem
    return refused


def _send(admin: Admin, node: int | None, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    call = "incrementalAlterConfigs"
    if admin.via_controllers:
        return admin.ask_controller(call, request, IncrementalAlterConfigsResponse, code_of=_first_code)
    if node is None:
        return admin.ask_any(call, request, IncrementalAlterConfigsResponse, code_of=_first_code)
    return admin.ask_broker(call, node, request, IncrementalAlterConfigsResponse, code_of=_first_code)


def _by_node(admin: Admin, resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """The resources that one request may have together: a broker takes only its own settings."""
    nodes: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        is_one_broker = resource.type is ResourceType.BROKER and resource.name != ""
        node = int(resource.name) if is_one_broker and not admin.via_controllers else None
        nodes.setdefault(node, []).append(resource)
    return nodes


def _first_code(response: IncrementalAlterConfigsResponse) -> int:
    """A node that cannot reach the controller returns its error for every resource."""
    return response.responses[0].error_code if response.responses else 0
