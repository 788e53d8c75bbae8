"""The id of the cluster, for requests that name it and should not ask a broker each time."""

from kaspar.callers.identities import Identity
from kaspar.client.admin.cluster import describe_cluster
from kaspar.rest.administration import Administration


class KnownCluster:
    """A cluster never changes its id, so it is asked for once; and again for a request that names another one, since
    the brokers behind an address may have been replaced."""

    def __init__(self, administration: Administration) -> None:
        self._administration = administration
        self._cluster_id: str | None = None

    async def has_id(self, identity: Identity, cluster_id: str) -> bool:
        """Raises RestError."""
        if cluster_id != self._cluster_id:
            self._cluster_id = (await self._administration.call(identity, describe_cluster)).cluster_id
        return cluster_id == self._cluster_id
