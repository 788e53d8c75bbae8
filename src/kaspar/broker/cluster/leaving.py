"""Controlled shutdown: before a broker stops, the controller moves the partitions that it leads to other replicas."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import ControlledShutdown

log = get_log(__name__)

WITHIN_S: Final = 30.0
WITHOUT_PROGRESS_S: Final = 2.0
"""Partitions without another in-sync replica keep their leader, and are not waited for any longer than this."""
BETWEEN_S: Final = 0.1
AWAY_FOR_S: Final = 1.0
"""How long the metadata store may be unreachable before a stopping broker no longer waits for the controller."""
_ANOTHER_MAY_REPLY: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT})
"""The controller is being replaced: retrying does no harm."""


async def move_leaders_away(controller: ControllerChannel, broker_id: BrokerId, broker_epoch: int) -> None:
    """Return when this broker leads nothing any more, or no further partition can be moved."""
    until = time.monotonic() + WITHIN_S
    led: int | None = None
    progress_at = time.monotonic()
    while time.monotonic() < until:
        try:
            remaining = await controller.submit(ControlledShutdown(broker_id, broker_epoch))
        except Refused as refusal:
            if refusal.code in _ANOTHER_MAY_REPLY:
                await asyncio.sleep(BETWEEN_S)
                continue
            log.warning("leadership could not be moved away before this broker stops", reason=refusal.message)
            return
        if not remaining:
            return
        if led is None or len(remaining) < led:
            led, progress_at = len(remaining), time.monotonic()
        elif time.monotonic() - progress_at > WITHOUT_PROGRESS_S:
            break
        await asyncio.sleep(BETWEEN_S)
    log.warning("this broker is stopping although it still leads partitions", partitions=led)


async def unless_away(work: Coroutine[Any, Any, None], is_connected: Callable[[], bool]) -> None:
    """Do work that needs the controller before this broker stops, unless the metadata store is unreachable. Then there
    is no controller that could do it, perhaps because the whole cluster is stopping.
    """
    task = asyncio.ensure_future(work)
    connected_at = time.monotonic()
    try:
        while not task.done():
            await asyncio.wait((task,), timeout=BETWEEN_S)
            if is_connected():
                connected_at = time.monotonic()
            elif time.monotonic() - connected_at > AWAY_FOR_S and not task.done():
                log.warning("this broker is stopping without the controller: the metadata store does not respond")
                return
        task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
