"""The topics of a Produce or Fetch request that the client may not write to or read from."""

from collections.abc import Collection, Iterable

from kaspar.acls.acl import AclOperation, ResourceType
from kaspar.broker.authorization.access import Access, Caller
from kaspar.metadata.images import ImageSource
from kaspar.network.exchange import Exchange
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.shapes import Topic


class RecordAccess:
    def __init__(self, access: Access, images: ImageSource) -> None:
        self._access = access
        self._images = images

    def _caller(self, exchange: Exchange, api_key: ApiKey) -> Caller:
        return self._access.caller(exchange.principal, exchange.connection.peer, api_key)

    def _denied(self, caller: Caller, operation: AclOperation, topics: Iterable[Topic]) -> Collection[Topic]:
        names = self._images.current.topic_names
        return [
            topic
            for topic in topics
            if (name := topic if isinstance(topic, str) else names.get(topic)) is not None
            and not caller.is_authorized(operation, ResourceType.TOPIC, name)
        ]


class ProducePermissions(RecordAccess):
    def denied(self, exchange: Exchange, topics: Iterable[Topic]) -> Collection[Topic]:
        return self._denied(self._caller(exchange, ApiKey.PRODUCE), AclOperation.WRITE, topics)

    def may_use(self, exchange: Exchange, transactional_id: str) -> bool:
        caller = self._caller(exchange, ApiKey.PRODUCE)
        return caller.is_authorized(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)


class FetchPermissions(RecordAccess):
    def denied(self, exchange: Exchange, topics: Iterable[Topic]) -> Collection[Topic]:
        """The topics that a consumer may not read from."""
        return self._denied(self._caller(exchange, ApiKey.FETCH), AclOperation.READ, topics)

    def may_follow(self, exchange: Exchange) -> bool:
        """Whether a follower may fetch: all topics, or none."""
        return self._caller(exchange, ApiKey.FETCH).is_authorized_on_cluster(AclOperation.CLUSTER_ACTION)
