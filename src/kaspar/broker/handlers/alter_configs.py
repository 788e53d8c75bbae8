"""AlterConfigs: the older API for changing configs, which replaces all configs of a resource."""

from kaspar.base.ids import BrokerId
from kaspar.broker.handlers.config_changes import alter_configs
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import ConfigChange, ConfigOperation, ConfigResource
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


class AlterConfigsHandler:
    def __init__(self, broker_id: BrokerId, controller: ControllerChannel) -> None:
        self._broker_id = broker_id
        self._controller = controller

    async def __call__(self, context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
        changes = tuple(map(_change, request.resources))
        outcomes = await alter_configs(self._broker_id, self._controller, changes, validate_only=request.validate_only)
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
