"""The controller on another broker: this broker follows its images and sends it events."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from kaspar.base.errors import ErrorCode, KasparError, MalformedBytes, Refused
from kaspar.base.ids import BrokerId
from kaspar.broker.security.between_brokers import ConnectToBroker, connect_in_the_clear
from kaspar.client.asynchronous import AsyncConnection
from kaspar.controller.event_codec import decode_reply, encode_event
from kaspar.controller.events import ControllerEvent
from kaspar.controller.fence import NoLongerController
from kaspar.controller.shell import Committed
from kaspar.metadata.deltas import apply_delta, decode_delta
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.images import ImageUpdate, ImageVersion
from kaspar.metadata.layout.controller_nodes import Address
from kaspar.protocol.messages.follow_image import FollowImageRequest, FollowImageResponse
from kaspar.protocol.messages.submit_event import SubmitEventRequest, SubmitEventResponse

R = TypeVar("R")

POLL_MS: Final = 1000
SILENT_S: Final = POLL_MS / 1000 + 5.0
"""The controller counts as lost if it has not responded for this long; a new connection is opened then."""
EVENT_WITHIN_S: Final = 30.0
APPLIED_INLINE_BYTES: Final = 64 * 1024
"""Applying this much takes about a millisecond."""
NOTHING: Final = ImageVersion(-1, -1)


class LostController(KasparError):
    """The connection to the controller is lost, or its broker is no longer the controller."""


class RemoteController:
    """Used for one connection: `follow` runs until the controller is lost, and is not called again."""

    interrupted: str | None = None

    def __init__(
        self,
        controller_id: BrokerId,
        address: Address,
        *,
        me: BrokerId,
        on_update: Callable[[ImageUpdate], None],
        heard_at: float = -math.inf,
        connect: ConnectToBroker = connect_in_the_clear,
    ) -> None:
        self.controller_id = controller_id
        self.address = address
        self.heard_at = heard_at
        """When the last poll was sent to which the controller responded that it still was the controller."""
        self._me = me
        self._connect_to = connect
        self._on_update = on_update
        self._events: AsyncConnection | None = None
        self._connecting = asyncio.Lock()

    # -- images --------------------------------------------------------------------------------------------------------

    async def follow(self, image: ClusterImage | None, version: ImageVersion, connected: Callable[[], None]) -> None:
        """Follow the image from that version. `connected` is called after the first response. Raises LostController."""
        try:
            async with await self._connect() as connection:
                while True:
                    asked_at = time.monotonic()
                    response = await self._poll(connection, version)
                    if response.delta is not None:
                        update = await _updated(image, response.delta)
                        image, version = update.image, update.version
                        self._on_update(update)
                    if response.is_current:
                        self.heard_at = asked_at
                    connected()
        except (OSError, KasparError, MalformedBytes, msgspec.MsgspecError) as problem:
            raise LostController(f"broker {self.controller_id} at {_text(self.address)}: {problem}") from problem
        finally:
            if self._events is not None:
                self._events.abort()

    async def _poll(self, connection: AsyncConnection, version: ImageVersion) -> FollowImageResponse:
        response = await connection.request(
            FollowImageRequest(
                controller_epoch=version.controller_epoch,
                image_number=version.number,
                max_wait_ms=POLL_MS,
            )
        )
        assert isinstance(response, FollowImageResponse)
        if response.error_code != ErrorCode.NONE:
            raise Refused(ErrorCode(response.error_code), response.error_message or "it is not the controller")
        return response

    async def _connect(self) -> AsyncConnection:
        host, port = self.address
        # Kaspar's own APIs have one version each, so there is nothing to negotiate.
        return await self._connect_to(host, port, client_id=f"broker-{self._me}", timeout_s=SILENT_S, negotiate=False)

    # -- events --------------------------------------------------------------------------------------------------------

    async def commit(self, event: ControllerEvent[R]) -> Committed[R]:
        """Send an event. Raises Refused: NOT_CONTROLLER if it has reached no controller, REQUEST_TIMED_OUT if it may
        have.
        """
        name, payload = encode_event(event)
        try:
            connection = await self._event_connection()
        except OSError as problem:
            raise NoLongerController(f"the controller cannot be reached: {problem}") from problem
        try:
            response = await connection.request(
                SubmitEventRequest(event=name, payload=payload), timeout_s=EVENT_WITHIN_S
            )
        except (OSError, MalformedBytes) as problem:
            raise Refused(
                ErrorCode.REQUEST_TIMED_OUT, f"the controller was lost before it replied: {problem}"
            ) from problem
        assert isinstance(response, SubmitEventResponse)
        if response.error_code != ErrorCode.NONE:
            raise Refused(ErrorCode(response.error_code), response.error_message or "")
        version = ImageVersion(response.controller_epoch, response.image_number)
        return Committed(decode_reply(event, response.reply or b""), version)

    async def _event_connection(self) -> AsyncConnection:
        """The connection for events. It is not the one that polls for images, because responses come in order."""
        async with self._connecting:
            if self._events is None or self._events.is_closed:
                self._events = await self._connect()
            return self._events


async def _updated(image: ClusterImage | None, delta: bytes) -> ImageUpdate:
    """Decode and apply a delta. A large one, mostly the whole image, is applied in a thread."""
    if len(delta) <= APPLIED_INLINE_BYTES:
        return apply_delta(image, decode_delta(delta))
    return await asyncio.to_thread(lambda: apply_delta(image, decode_delta(delta)))


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
