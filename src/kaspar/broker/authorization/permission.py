"""The permission gate of the request pipeline: which short forms a connection may use.

The resources of a request are checked by the guard of its API (authorization/table.py), or by Produce and Fetch
themselves. Short forms of requests (network/pipeline.py) have no guard. A recognized request is one that this
connection has sent before and that was carried out: as long as no ACL changes, it is allowed again. For a Produce
request of one batch, the topics that the connection may write to are remembered, also until an ACL changes.
"""

from kaspar.acls.acl import AclOperation, ResourceType
from kaspar.broker.authorization.access import Access, host_address, logs_what_is_allowed
from kaspar.metadata.images import ImageSource
from kaspar.network.gates import Authenticated, Permitted, Principal
from kaspar.protocol.shapes import Topic


class AclPermission:
    checks_topics = True

    def __init__(self, access: Access, images: ImageSource) -> None:
        self._authorizer = access.authorizer
        self._images = images

    def check(self, connection: Authenticated, principal: Principal, api_key: int) -> bool:
        if logs_what_is_allowed():
            return False
        permitted = connection.permitted
        if permitted is None or permitted.version != self._authorizer.version or permitted.principal is not principal:
            connection.permitted = Permitted(principal, self._authorizer.version)
            connection.known.clear()
        return True

    def may_write(self, connection: Authenticated, topic: Topic) -> bool:
        permitted = connection.permitted
        assert permitted is not None, "the request was checked"
        if topic in permitted.writable:
            return True
        name = topic if isinstance(topic, str) else self._images.current.topic_names.get(topic)
        if name is None:
            return False
        principal, host = str(permitted.principal), host_address(connection.peer)
        verdict = self._authorizer.authorize(principal, host, AclOperation.WRITE, ResourceType.TOPIC, name)
        topics = self._images.current.topics
        if verdict.allowed and name in topics:  # otherwise names that a client invents would fill the memory
            if len(permitted.writable) >= 2 * len(topics):  # each topic has a name and an id: some are deleted
                permitted.writable.clear()
            permitted.writable.add(topic)
        return verdict.allowed
