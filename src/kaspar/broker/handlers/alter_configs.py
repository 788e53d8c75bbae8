"""the older way to change settings: what a resource set before and is not named again is dropped."""

from typing import TYPE_CHECKING

from kaspar.broker.handlers import RequestContext
from kaspar.metadata.events import ConfigChange, ConfigOperation, ConfigResource
from kaspar.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


async def handle(broker: "Broker", context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    outcomes = await broker.alter_configs(tuple(map(_change, request.resources)), validate_only=request.validate_only)
    return AlterConfigsResponse(
        responses=tuple(
            AlterConfigsResourceResponse(
                error_code=each.outcome.error,
                error_message=each.outcome.message,
                resource_type=each.resource.type,
                resource_name=each.resource.name,
            )
            for each in outcomes
        )
    )


def _change(resource: AlterConfigsResource) -> ConfigChange:
    operations = tuple(ConfigOperation.set(config.name, config.value) for config in resource.configs)
    return ConfigChange(ConfigResource(resource.resource_type, resource.resource_name), operations, replace=True)
