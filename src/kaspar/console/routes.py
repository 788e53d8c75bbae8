"""All resources of the API, and all that pages can watch."""

from typing import Final

from kaspar.console.http.endpoint import Channel, Endpoint
from kaspar.console.resources import (
    brokers,
    cluster,
    overview,
    schemas,
    session,
    topics,
)

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *session.ENDPOINTS,
    *overview.ENDPOINTS,
    *brokers.ENDPOINTS,
    *topics.ENDPOINTS,
    *schemas.ENDPOINTS,
)
CHANNELS: Final[tuple[Channel, ...]] = (
    *cluster.CHANNELS,
    *overview.CHANNELS,
    *brokers.CHANNELS,
)
