"""The controller that runs on another broker: its images are followed, and events are passed to it."""

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
"""When a controller has not responded for so long, it is out of touch: the connection is given up, and made again."""
EVENT_WITHIN_S: Final = 30.0
APPLIED_INLINE_BYTES: Final = 64 * 1024
"""Takes about a millisecond."""
NOTHING: Final = ImageVersion(-1, -1)


class LostController(KasparError):
    """The connection to the controller is lost, or its broker does not control any more."""


class RemoteController:
    """`following` runs until the controller is lost. Then this object is done with."""

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
        """When a controller was last asked, of those times when it then knew itself to be the controller."""
        self._me = me
        self._connect_to = connect
        self._on_update = on_update
        self._events: AsyncConnection | None = None
        self._connecting = asyncio.Lock()

    # -- images --------------------------------------------------------------------------------------------------------

    async def follow(self, image: ClusterImage | None, version: ImageVersion, connected: Callable[[], None]) -> None:
        """Follow from that version of the image on; `connected` is called when the first response is in. Raises
        LostController.
        """
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
        # Kaspar's own APIs have one version each: there is nothing to negotiate.
        return await self._connect_to(host, port, client_id=f"broker-{self._me}", timeout_s=SILENT_S, negotiate=False)

    # -- events --------------------------------------------------------------------------------------------------------

    async def commit(self, event: ControllerEvent[R]) -> Committed[R]:
        """Raises Refused: NOT_CONTROLLER if the event has reached no controller, REQUEST_TIMED_OUT if it may have."""
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
        """Apart from the one on which images are waited for: responses of a connection come in order."""
        async with self._connecting:
            if self._events is None or self._events.is_closed:
                self._events = await self._connect()
            return self._events


async def _updated(image: ClusterImage | None, delta: bytes) -> ImageUpdate:
    """A large one, most often the whole image, in a thread."""
    if len(delta) <= APPLIED_INLINE_BYTES:
        return apply_delta(image, decode_delta(delta))
    return await asyncio.to_thread(lambda: apply_delta(image, decode_delta(delta)))


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
