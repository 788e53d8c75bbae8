"""The operations that a client is authorized for, as bits."""

from typing import Final, Protocol

from kaspar.network.api import RequestContext

ALL_TOPIC_OPERATIONS: Final = 3576
ALL_GROUP_OPERATIONS: Final = 3400
ALL_CLUSTER_OPERATIONS: Final = 8096
NOT_ASKED: Final = -(2**31)
"""The value in the response if the request did not ask for the operations."""


class AuthorizedOperations(Protocol):
    def of_topic(self, context: RequestContext, name: str) -> int: ...

    def of_group(self, context: RequestContext, group_id: str) -> int: ...

    def of_cluster(self, context: RequestContext) -> int: ...


class AllOperations:
    """Used without an authorizer: all operations are authorized."""

    def of_topic(self, context: RequestContext, name: str) -> int:
        return ALL_TOPIC_OPERATIONS

    def of_group(self, context: RequestContext, group_id: str) -> int:
        return ALL_GROUP_OPERATIONS

    def of_cluster(self, context: RequestContext) -> int:
        return ALL_CLUSTER_OPERATIONS
