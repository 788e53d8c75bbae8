"""All resources of the API, and all values that pages can watch."""

from typing import Final

from kaspar.console.http.endpoint import Channel, Endpoint
from kaspar.console.resources import (
    acls,
    brokers,
    cluster,
    findings,
    groups,
    overview,
    pipelines,
    quotas,
    schemas,
    session,
    topics,
    transactions,
    users,
)

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *session.ENDPOINTS,
    *overview.ENDPOINTS,
    *brokers.ENDPOINTS,
    *topics.ENDPOINTS,
    *schemas.ENDPOINTS,
    *groups.ENDPOINTS,
    *transactions.ENDPOINTS,
    *pipelines.ENDPOINTS,
    *findings.ENDPOINTS,
    *acls.ENDPOINTS,
    *users.ENDPOINTS,
    *quotas.ENDPOINTS,
)
CHANNELS: Final[tuple[Channel, ...]] = (
    *cluster.CHANNELS,
    *overview.CHANNELS,
    *brokers.CHANNELS,
    *groups.CHANNELS,
    *findings.CHANNELS,
)
