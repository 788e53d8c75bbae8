"""Following the controller of another broker."""

import asyncio
import threading
from typing import Any

import pytest

from kaspar.base.ids import BrokerId
from kaspar.broker.cluster import remote_controller
from kaspar.broker.cluster.remote_controller import NOTHING, LostController, RemoteController
from kaspar.metadata.deltas import apply_delta, delta_between, encode_delta
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.images import ImageUpdate, ImageVersion
from kaspar.protocol.messages.follow_image import FollowImageResponse


class OneImage:
    """A connection to a controller that has one image, and then ends."""

    def __init__(self, delta: bytes) -> None:
        self._responses = [FollowImageResponse(delta=delta, is_current=True)]

    async def request(self, request: object) -> FollowImageResponse:
        if not self._responses:
            raise ConnectionResetError("it has ended")
        return self._responses.pop()

    async def __aenter__(self) -> "OneImage":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("inline_bytes", [0, 1 << 20])
def test_a_large_image_is_decoded_in_a_thread(inline_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_controller, "APPLIED_INLINE_BYTES", inline_bytes)
    applied_in: list[threading.Thread] = []

    def watched(*arguments: Any) -> ImageUpdate:
        applied_in.append(threading.current_thread())
        return apply_delta(*arguments)

    monkeypatch.setattr(remote_controller, "apply_delta", watched)
    update = ImageUpdate.whole(ImageVersion(1, 1), ClusterImage("cluster"))
    received: list[ImageUpdate] = []

    async def connect(*_: object, **__: object) -> Any:
        return OneImage(encode_delta(delta_between(None, update)))

    async def scenario() -> None:
        remote = RemoteController(
            BrokerId(2), ("host2", 9092), me=BrokerId(1), on_update=received.append, connect=connect
        )
        with pytest.raises(LostController):
            await remote.follow(None, NOTHING, lambda: None)

    asyncio.run(scenario())
    assert received == [update]
    assert [thread is threading.main_thread() for thread in applied_in] == [inline_bytes > 0]
