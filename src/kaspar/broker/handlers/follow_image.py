"""FollowImage, an API of Kaspar: another broker follows the image of the controller that runs here."""

from collections.abc import Callable

from kaspar.base.errors import ErrorCode
from kaspar.broker.cluster.membership import Membership
from kaspar.metadata.images import ImageVersion
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.follow_image import FollowImageRequest, FollowImageResponse

MAX_WAIT_MS = 10_000


class FollowImageHandler:
    def __init__(self, membership: Callable[[], Membership | None]) -> None:
        """`membership` returns None on a broker that is not in a cluster."""
        self._membership = membership

    async def __call__(self, context: RequestContext, request: FollowImageRequest) -> FollowImageResponse:
        membership = self._membership()
        feed = None if membership is None else membership.own.feed
        if membership is None or feed is None:
            return FollowImageResponse(
                error_code=ErrorCode.NOT_CONTROLLER, error_message="This broker is not the controller."
            )
        known = ImageVersion(request.controller_epoch, request.image_number)
        within_s = min(max(request.max_wait_ms, 0), MAX_WAIT_MS) / 1000
        delta = await feed.after(known, within_s=within_s)
        if membership.own.feed is not feed:
            return FollowImageResponse(
                error_code=ErrorCode.NOT_CONTROLLER, error_message="Another broker has become the controller."
            )
        return FollowImageResponse(delta=delta, is_current=membership.is_current_controller)
