"""ApiVersions: the APIs and versions that this broker serves, and the features of the cluster (KIP-511, KIP-584)."""

import re
from collections.abc import Mapping

from kaspar.base.errors import ErrorCode
from kaspar.broker.served_apis import SERVED
from kaspar.metadata.features import SUPPORTED
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext, ServedApi
from kaspar.protocol.api_keys import FIRST_OWN_KEY, ApiKey
from kaspar.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

# Kafka announces Produce 0 to 2 without serving them, because librdkafka before 2.x looks there to learn what a broker
# can do.
ANNOUNCED_FROM = {ApiKey.PRODUCE: 0}

FIRST_WITH_LEVEL_0 = 4
"""Earlier versions of the response omit features whose range begins at 0, which their clients reject."""

_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def announced(served: Mapping[int, ServedApi]) -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(
            api_key=api.key, min_version=ANNOUNCED_FROM.get(api.key, api.first_version), max_version=api.last_version
        )
        for api in sorted(served.values(), key=lambda api: api.key)
        if api.key < FIRST_OWN_KEY
    )


class ApiVersionsHandler:
    def __init__(self, images: ImageSource, served: Mapping[int, ServedApi]) -> None:
        self._images = images
        self._announced = announced(served)

    def __call__(self, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
        if context.version >= 3 and not (
            _NAME.fullmatch(request.client_software_name) and _NAME.fullmatch(request.client_software_version)
        ):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
        context.client.uses(request.client_software_name, request.client_software_version)
        image = self._images.current
        least = 0 if context.version >= FIRST_WITH_LEVEL_0 else 1
        return ApiVersionsResponse(
            api_keys=self._announced,
            supported_features=tuple(
                SupportedFeatureKey(name=name, min_version=first, max_version=last)
                for name, (first, last) in SUPPORTED.items()
                if first >= least
            ),
            finalized_features_epoch=image.features_epoch,
            finalized_features=tuple(
                FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in image.features.items()
            ),
        )


def unsupported_version() -> ApiVersionsResponse:
    """The response, at version 0, to an unknown version of ApiVersions. The client retries with a version in it."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=tuple(api for api in announced(SERVED) if api.api_key == ApiKey.API_VERSIONS),
    )
