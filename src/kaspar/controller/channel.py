"""How the parts of a broker reach the controller, on whichever broker it runs.

The channel exists as long as the broker. While it has no controller, every event is refused with NOT_CONTROLLER, which
clients retry.
"""

import asyncio
import contextlib
from typing import Final, Protocol, TypeVar

from kaspar.base.log import get_log
from kaspar.controller.events import ControllerEvent
from kaspar.controller.fence import NoLongerController
from kaspar.controller.shell import Committed
from kaspar.metadata.images import FollowedImage

log = get_log(__name__)

R = TypeVar("R")

FOLLOW_WITHIN_S: Final = 30.0
"""How long a reply waits until this broker has applied the change: after that time most clients have given up."""
ELECTED_WITHIN_S: Final = 5.0
"""How long an event waits for the next controller after the last one has gone: an election takes less than a second."""


class ControllerChannel(Protocol):
    async def submit(self, event: ControllerEvent[R]) -> R:
        """The reply, once its change is committed and this broker has applied it: a topic that was just created can
        be written to. Raises Refused. Must not be awaited by a listener of images, because it waits for all listeners.
        """
        ...

    async def commit(self, event: ControllerEvent[R]) -> Committed[R]:
        """The reply as soon as its change is committed. This broker's image may not show the change yet."""
        ...


class ReachableController(Protocol):
    """The controller: this broker's own (ControllerShell), or that of another broker."""

    @property
    def interrupted(self) -> str | None:
        """Why nothing can be changed now, as a sentence. Safe from any thread."""
        ...

    async def commit(self, event: ControllerEvent[R]) -> Committed[R]: ...


class Channel:
    """The channel of a broker. Used in the event loop's thread only."""

    def __init__(self, images: FollowedImage, *, follow_within_s: float = FOLLOW_WITHIN_S) -> None:
        self._images = images
        self._follow_within_s = follow_within_s
        self._controller: ReachableController | None = None
        self._connected = asyncio.Event()
        self._was_connected = False

    def connect(self, controller: ReachableController) -> None:
        """Send the events to this controller from now on."""
        self._controller = controller
        self._was_connected = True
        self._connected.set()

    def disconnect(self) -> None:
        """Called when the controller has gone and the next one is not known yet."""
        self._controller = None
        self._connected.clear()

    @property
    def problem(self) -> str | None:
        """Why nothing can be changed in the cluster now, as a sentence. Safe from any thread."""
        controller = self._controller
        return "No controller is known." if controller is None else controller.interrupted

    async def submit(self, event: ControllerEvent[R]) -> R:
        reply, version = await self.commit(event)
        # Also if nothing was changed: a client that learns that a topic already exists may write to it at once.
        if not await self._images.followed(version, within_s=self._follow_within_s):
            log.warning("a change is committed but not applied here yet", change=type(event).__name__)
        return reply

    async def commit(self, event: ControllerEvent[R]) -> Committed[R]:
        return await (await self._reach()).commit(event)

    async def _reach(self) -> ReachableController:
        if self._controller is None and self._was_connected:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._connected.wait(), ELECTED_WITHIN_S)
        if self._controller is None:
            raise NoLongerController("No controller is known.")
        return self._controller
