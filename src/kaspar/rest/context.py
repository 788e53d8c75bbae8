"""What the endpoints of both versions share."""

from dataclasses import dataclass
from functools import partial

from starlette.requests import Request

from kaspar.callers.identities import Identity, NoCredentials, identity_of
from kaspar.rest.administration import Administration
from kaspar.rest.cluster import KnownCluster
from kaspar.rest.consuming.instances import ConsumerInstances
from kaspar.rest.errors import KAFKA_AUTHENTICATION, RestError
from kaspar.rest.formats.by_schema import Registration, SchemaFormats
from kaspar.rest.http import BodyBudget, Links
from kaspar.rest.producing import Producers
from kaspar.rest.settings import RestConfig
from kaspar.rest.topics import KnownTopics
from kaspar.web.identity import caller_of
from kaspar.web.turns import Turns


@dataclass(frozen=True, slots=True)
class RestContext:
    config: RestConfig
    administration: Administration
    cluster: KnownCluster
    topics: KnownTopics
    producers: Producers
    bodies: BodyBudget
    schemas: SchemaFormats
    consumers: ConsumerInstances
    links: Links
    turns: Turns

    def identity(self, request: Request) -> Identity:
        """The identity that brokers see for this request. Raises RestError."""
        try:
            return identity_of(caller_of(request.scope), propagate=self.config.settings.kaspar_propagate_identity)
        except NoCredentials as problem:
            raise RestError(KAFKA_AUTHENTICATION, str(problem)) from None

    def registration(self, identity: Identity, topic: str) -> Registration:
        """What this caller may register. Without identity propagation, brokers see every caller as the proxy."""
        settings = self.config.settings
        return Registration(
            partial(self.topics.check_writable, identity, topic),
            any_subject=settings.kaspar_register_any_subject or not settings.kaspar_propagate_identity,
        )
