"""ApiVersions: what this broker serves, so that older and newer clients find a version both know; and up to which level
the cluster has its features, by which clients choose between the rules of several releases.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import SERVED, RequestContext, ServedApi
from kaspar.metadata.features import SUPPORTED
from kaspar.protocol.api_keys import FIRST_OWN_KEY, ApiKey
from kaspar.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

# Kafka announces Produce 0 to 2 without serving them, because librdkafka before 2.x looks there to learn what a
# broker can do.
ANNOUNCED_FROM = {ApiKey.PRODUCE: 0}

FIRST_WITH_LEVEL_0 = 4
"""Before, clients took a feature that begins at level 0 for a mistake, so they are not told what is supported of it."""

_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def announced(served: Mapping[int, ServedApi]) -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(
            api_key=api.key, min_version=ANNOUNCED_FROM.get(api.key, api.first_version), max_version=api.last_version
        )
        for api in sorted(served.values(), key=lambda api: api.key)
        if api.key < FIRST_OWN_KEY
    )


def handle(broker: "Broker", context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.version >= 3 and not (
        _NAME.fullmatch(request.client_software_name) and _NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
    image = broker.image
    least = 0 if context.version >= FIRST_WITH_LEVEL_0 else 1
    return ApiVersionsResponse(
        api_keys=announced(broker.requests.served),
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
    """The answer, at version 0, to a version of ApiVersions that is not known here: the client tries again with one
    that is.
    """
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=tuple(api for api in announced(SERVED) if api.api_key == ApiKey.API_VERSIONS),
    )
