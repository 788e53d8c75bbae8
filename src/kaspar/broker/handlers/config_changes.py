"""Config changes, as AlterConfigs and IncrementalAlterConfigs send them to the controller."""

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import AlterConfigs, ConfigChange, Outcome, ResourceOutcome


async def alter_configs(
    broker_id: BrokerId, controller: ControllerChannel, changes: tuple[ConfigChange, ...], *, validate_only: bool
) -> tuple[ResourceOutcome, ...]:
    """The outcome of each change, even if the controller refuses all of them."""
    try:
        return await controller.submit(AlterConfigs(changes, validate_only, broker_id))
    except Refused as refusal:
        return tuple(ResourceOutcome(change.resource, Outcome.of(refusal)) for change in changes)
