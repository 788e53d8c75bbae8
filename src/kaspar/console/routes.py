"""All resources of the API, and all that pages can watch."""

from typing import Final

from kaspar.console.http.endpoint import Channel, Endpoint
from kaspar.console.resources import cluster, schemas, session

ENDPOINTS: Final[tuple[Endpoint, ...]] = (*session.ENDPOINTS, *schemas.ENDPOINTS)
CHANNELS: Final[tuple[Channel, ...]] = (*cluster.CHANNELS,)
