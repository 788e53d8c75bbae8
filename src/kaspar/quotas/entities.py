"""Whom a quota is for, what it limits, and which of several applies (KIP-13, KIP-55, KIP-124, KIP-599, KIP-612)."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

DEFAULT: Final = ""
"""In place of a name: everybody who has no quota of their own. Names are never empty."""

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"


class QuotaEntity(NamedTuple):
    """Whom a quota is for: each part a name, DEFAULT, or None where the entity does not have it."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def parts(self) -> Iterator[tuple[str, str | None]]:
        """The types that it has, with their names as the protocol has them: None for the default. In Kafka's order."""
        for kind, name in ((CLIENT_ID, self.client_id), (USER, self.user), (IP, self.ip)):
            if name is not None:
                yield kind, name or None


Limits: TypeAlias = Mapping[str, float]
"""The values of an entity, by what they limit."""
QuotasByEntity: TypeAlias = Mapping[QuotaEntity, Limits]


class Applied(NamedTuple):
    """The quota that applies to a client, and who shares it: all clients with the same `user` and `client_id`, where an
    empty one stands for any.
    """

    user: str
    client_id: str
    limit: float | None


def applied_to(limits: Mapping[QuotaEntity, float], user: str, client_id: str) -> Applied:
    """The most specific quota counts. The order of precedence is that of Kafka's ClientQuotaManager. A client that does
    not say its client id has no quota for one, not even the default's.
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
