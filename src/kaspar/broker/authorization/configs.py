"""Guards of the config APIs: the permission depends on the type of the resource."""

from dataclasses import dataclass, replace
from typing import Any, Final

from kaspar.acls.acl import CLUSTER_NAME, AclOperation, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.broker.authorization.guards import MESSAGES, Call, Guard, Need, need, then, with_elements
from kaspar.controller.events import ResourceType as ConfigType
from kaspar.network.api import HandlerResult
from kaspar.protocol.messages import alter_configs, incremental_alter_configs
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kaspar.protocol.schema import Message


def _needs(operation: AclOperation) -> tuple[Need, ...]:
    return (
        need(operation, ResourceType.CLUSTER, of="brokers, loggers, client metrics"),
        need(operation, ResourceType.TOPIC, of="topics"),
        need(operation, ResourceType.GROUP, of="groups"),
    )


def _refusal(call: Call, needs: tuple[Need, ...], resource: Any) -> ErrorCode | None:
    on_cluster, on_topic, on_group = needs
    match resource.resource_type:
        case ConfigType.TOPIC:
            needed, name = on_topic, resource.resource_name
        case ConfigType.GROUP:
            needed, name = on_group, resource.resource_name
        case _:  # the handler refuses an unknown type
            needed, name = on_cluster, CLUSTER_NAME
    return None if needed.is_authorized(call.caller, name) else needed.code


@dataclass(frozen=True, slots=True)
class DescribeConfigs:
    needs: tuple[Need, ...] = _needs(AclOperation.DESCRIBE_CONFIGS)

    def __call__(self, call: Call, request: DescribeConfigsRequest) -> HandlerResult:
        codes = [_refusal(call, self.needs, each) for each in request.resources]
        if not any(codes):
            return call.proceed(request)
        refused = tuple(
            DescribeConfigsResult(
                error_code=code,
                error_message=MESSAGES[code],
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                configs=(),
            )
            for each, code in zip(request.resources, codes, strict=True)
            if code is not None
        )
        allowed = tuple(each for each, code in zip(request.resources, codes, strict=True) if code is None)
        if not allowed:
            return DescribeConfigsResponse(results=refused)
        return then(
            call.proceed(replace(request, resources=allowed)),
            lambda response: with_elements(response, "results", refused, call.context.version, first=False),
        )


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """The guard of AlterConfigs and IncrementalAlterConfigs. Results are in the order of the request."""

    response: type[Any]
    result: type[Any]
    needs: tuple[Need, ...] = _needs(AclOperation.ALTER_CONFIGS)

    def __call__(self, call: Call, request: Any) -> HandlerResult:
        codes = [_refusal(call, self.needs, each) for each in request.resources]
        if not any(codes):
            return call.proceed(request)
        refused = [
            None
            if code is None
            else self.result(
                error_code=code,
                error_message=None if each.resource_type == ConfigType.BROKER_LOGGER else MESSAGES[code],
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each, code in zip(request.resources, codes, strict=True)
        ]
        allowed = tuple(each for each, code in zip(request.resources, codes, strict=True) if code is None)
        if not allowed:
            return self._respond(refused)

        def merged(response: Any) -> Message:
            done = iter(response.responses)
            return self._respond([each if each is not None else next(done) for each in refused])

        return then(call.proceed(replace(request, resources=allowed)), merged)

    def _respond(self, results: list[Any]) -> Message:
        response: Message = self.response(responses=tuple(results))
        return response


DESCRIBE_CONFIGS: Final[Guard] = DescribeConfigs()
ALTER_CONFIGS: Final[Guard] = AlterConfigs(
    alter_configs.AlterConfigsResponse, alter_configs.AlterConfigsResourceResponse
)
INCREMENTAL_ALTER_CONFIGS: Final[Guard] = AlterConfigs(
    incremental_alter_configs.IncrementalAlterConfigsResponse, incremental_alter_configs.AlterConfigsResourceResponse
)
