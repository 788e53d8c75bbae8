"""The images that a controller publishes, kept for the brokers that request them.

The last few images are kept, so that a broker that is not far behind gets a delta. A broker that followed another
controller, or is further behind, gets the whole image.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from kaspar.metadata.deltas import delta_between, encode_delta
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.images import ImageUpdate, ImageVersion

KEPT_IMAGES: Final = 64
_MAX_CACHED: Final = 8


@dataclass(frozen=True, slots=True)
class _Published:
    version: ImageVersion
    image: ClusterImage
    update: ImageUpdate
    """The changes since the previous image."""


class ImageFeed:
    """Follows one controller (`publish` is its follower). Used in the event loop's thread only."""

    def __init__(self, *, kept: int = KEPT_IMAGES) -> None:
        self._published: deque[_Published] = deque(maxlen=kept)
        self._arrived = asyncio.Event()
        self._encoded: dict[tuple[ImageVersion | None, ImageVersion], bytes] = {}
        """A cache, because all brokers request the same delta at the same time."""

    def publish(self, update: ImageUpdate) -> None:
        self._published.append(_Published(update.version, update.image, update))
        self._arrived.set()
        self._arrived = asyncio.Event()

    async def after(self, known: ImageVersion, *, within_s: float) -> bytes | None:
        """The encoded delta from the `known` version to the newest. None if nothing is published within `within_s`."""
        if self._published and self._published[-1].version == known:
            arrived = self._arrived
            try:
                await asyncio.wait_for(arrived.wait(), within_s)
            except TimeoutError:
                return None
        if not self._published:
            return None
        return self._delta(known)

    def _delta(self, known: ImageVersion) -> bytes:
        newest = self._published[-1]
        numbers = [each.version for each in self._published]
        base = numbers.index(known) if known in numbers else None
        key = (None if base is None else known, newest.version)
        encoded = self._encoded.get(key)
        if encoded is None:
            if base is None:
                delta = delta_between(None, ImageUpdate.whole(newest.version, newest.image))
            else:
                later = list(self._published)[base + 1 :]
                update = later[0].update
                for each in later[1:]:
                    update = update.merged_with(each.update)
                delta = delta_between((known, self._published[base].image), update)
            encoded = encode_delta(delta)
            while len(self._encoded) >= _MAX_CACHED:
                del self._encoded[next(iter(self._encoded))]
            self._encoded[key] = encoded
        return encoded
