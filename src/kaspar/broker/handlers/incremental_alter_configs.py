"""IncrementalAlterConfigs: sets, deletes, appends to and subtracts from single configs.

Levels of the broker's own log are changed here and last as long as the process; all other changes go to the controller.
"""

from collections import Counter
from collections.abc import Callable

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId
from kaspar.broker import log_levels
from kaspar.broker.handlers.config_changes import alter_configs
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import (
    DONE,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    Outcome,
    ResourceType,
)
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class IncrementalAlterConfigsHandler:
    def __init__(
        self, broker_id: BrokerId, controller: ControllerChannel, levels_changed: Callable[[], None] = lambda: None
    ) -> None:
        """`levels_changed` is called when levels of the broker's log have changed."""
        self._broker_id = broker_id
        self._controller = controller
        self._levels_changed = levels_changed

    async def __call__(
        self, context: RequestContext, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        changes = [_change(resource) for resource in request.resources]
        times = Counter(change.resource for change in changes)
        # A resource that is named twice goes to the controller, which refuses it, whatever its type.
        levels = [each for each in changes if _is_logger(each) and times[each.resource] == 1]
        others = tuple(each for each in changes if each not in levels)
        stored = await alter_configs(self._broker_id, self._controller, others, validate_only=request.validate_only)
        outcomes = {each.resource: each.outcome for each in stored}
        for change in levels:
            outcomes[change.resource] = _alter_levels(self._broker_id, change, request.validate_only)
        if levels:
            self._levels_changed()
        return IncrementalAlterConfigsResponse(
            responses=tuple(_response(change.resource, outcomes[change.resource]) for change in changes)
        )


def _is_logger(change: ConfigChange) -> bool:
    return change.resource.type == ResourceType.BROKER_LOGGER


def _change(resource: AlterConfigsResource) -> ConfigChange:
    operations = tuple(
        ConfigOperation(config.name, config.config_operation, config.value) for config in resource.configs
    )
    return ConfigChange(ConfigResource(resource.resource_type, resource.resource_name), operations)


def _alter_levels(broker_id: int, change: ConfigChange, validate_only: bool) -> Outcome:
    try:
        log_levels.check(broker_id, change)
    except Refused as refused:
        return Outcome.of(refused)
    if not validate_only:
        log_levels.apply(change)
    return DONE


def _response(resource: ConfigResource, outcome: Outcome) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=outcome.error,
        error_message=outcome.message,
        resource_type=resource.type,
        resource_name=resource.name,
    )
