"""ApiVersions: what this broker serves, so that older and newer clients find a version both know."""

import re
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import SERVED, RequestContext
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

# Kafka announces Produce 0 to 2 without serving them, because librdkafka before 2.x looks there to learn what a
# broker can do.
ANNOUNCED_FROM = {ApiKey.PRODUCE: 0}

_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def announced() -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(
            api_key=api.key, min_version=ANNOUNCED_FROM.get(api.key, api.first_version), max_version=api.last_version
        )
        for api in sorted(SERVED.values(), key=lambda api: api.key)
    )


def handle(broker: "Broker", context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.version >= 3 and not (
        _NAME.fullmatch(request.client_software_name) and _NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
    return ApiVersionsResponse(api_keys=announced())


def unsupported_version() -> ApiVersionsResponse:
    """The answer, at version 0, to a version of ApiVersions that is not known here: the client tries again with one
    that is.
    """
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=tuple(api for api in announced() if api.api_key == ApiKey.API_VERSIONS),
    )
