"""ListConfigResources: the resources that have configs. Version 0 only has client-metrics subscriptions."""

from kaspar.base.errors import ErrorCode
from kaspar.controller.events import ResourceType
from kaspar.metadata import ClusterImage
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_LISTED = tuple(kind for kind in ResourceType if kind is not ResourceType.UNKNOWN)


class ListConfigResourcesHandler:
    def __init__(self, images: ImageSource) -> None:
        self._images = images

    def __call__(self, context: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
        if context.version == 0:
            wanted: tuple[int, ...] = (ResourceType.CLIENT_METRICS,)
        else:
            wanted = request.resource_types or _LISTED
        if not set(wanted) <= set(_LISTED):
            return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=())
        image = self._images.current
        return ListConfigResourcesResponse(
            config_resources=tuple(
                ConfigResource(resource_name=name, resource_type=kind)
                for kind in _LISTED
                if kind in wanted
                for name in _names(image, kind)
            )
        )


def _names(image: ClusterImage, kind: ResourceType) -> list[str]:
    match kind:
        case ResourceType.TOPIC:
            return list(image.topics)
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(broker_id) for broker_id in image.brokers]
        case ResourceType.GROUP:
            return list(image.group_configs)
        case ResourceType.CLIENT_METRICS:
            return list(image.client_metrics_configs)
        case ResourceType.UNKNOWN:
            return []
