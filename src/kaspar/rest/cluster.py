"""The id of the cluster, cached for requests that name it."""

from kaspar.callers.identities import Identity
from kaspar.client.admin.cluster import describe_cluster
from kaspar.rest.administration import Administration


class KnownCluster:
    """The cluster's id never changes, so it is requested once. It is requested again when a request names another id,
    since the brokers behind an address may have been replaced."""

    def __init__(self, administration: Administration) -> None:
        self._administration = administration
        self._cluster_id: str | None = None

    async def has_id(self, identity: Identity, cluster_id: str) -> bool:
        """Raises RestError."""
        if cluster_id != self._cluster_id:
            self._cluster_id = (await self._administration.call(identity, describe_cluster)).cluster_id
        return cluster_id == self._cluster_id
