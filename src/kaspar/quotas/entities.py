"""The entities that have quotas, what a quota limits, and which of several quotas applies (KIP-13, KIP-55, KIP-124,
KIP-599, KIP-612).
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

DEFAULT: Final = ""
"""Stands for a name in the default quota, which applies to every entity without a quota of its own. Names are never
empty."""

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"


class QuotaEntity(NamedTuple):
    """The entity that a quota applies to. Each part is a name, DEFAULT, or None if the entity does not have it."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def parts(self) -> Iterator[tuple[str, str | None]]:
        """The entity's types and names as in the protocol, where None is the default. In Kafka's order."""
        for kind, name in ((CLIENT_ID, self.client_id), (USER, self.user), (IP, self.ip)):
            if name is not None:
                yield kind, name or None


Limits: TypeAlias = Mapping[str, float]
"""The quota values of an entity, by quota name."""
QuotasByEntity: TypeAlias = Mapping[QuotaEntity, Limits]


class Applied(NamedTuple):
    """The quota that applies to a client, and the clients that share it: all with the same `user` and `client_id`,
    where an empty value stands for any.
    """

    user: str
    client_id: str
    limit: float | None


def applied_to(limits: Mapping[QuotaEntity, float], user: str, client_id: str) -> Applied:
    """The most specific quota of a client, in the order of precedence of Kafka's ClientQuotaManager. A client without a
    client id has no client-id quota, not even the default one.
    """
    for owner, clients in ((user, True), (user, False), (DEFAULT, True), (DEFAULT, False)):
        if clients and client_id:
            for client in (client_id, DEFAULT):
                limit = limits.get(QuotaEntity(owner, client))
                if limit is not None:
                    return Applied(user, client_id, limit)
        elif not clients:
            limit = limits.get(QuotaEntity(owner))
            if limit is not None:
                return Applied(user, "", limit)
    if client_id:
        for client in (client_id, DEFAULT):
            limit = limits.get(QuotaEntity(None, client))
            if limit is not None:
                return Applied("", client_id, limit)
    return Applied("", client_id, None)
