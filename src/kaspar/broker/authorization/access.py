"""The authorizer as a broker uses it: it follows the image, and every decision goes to the audit log.

The audit log is a separate logger, like Kafka's `kafka.authorizer.logger`: denied operations at INFO, allowed ones at
DEBUG. One request can name very many resources: beyond MAX_DENIED_LINES denials are only counted.
"""

import asyncio
import ipaddress
import logging
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from kaspar.acls.acl import CLUSTER_NAME, AclOperation, PatternType, ResourceType, operations_of
from kaspar.acls.authorizer import StandardAuthorizer, Verdict
from kaspar.base.log import get_log
from kaspar.broker.loggers import AUDIT_LOGGER
from kaspar.metadata.deltas import acls_between
from kaspar.metadata.images import ImageChange
from kaspar.network.api import RequestContext
from kaspar.network.gates import Principal
from kaspar.protocol.api import api_name
from kaspar.protocol.api_keys import ApiKey

audit = get_log(AUDIT_LOGGER)

MAX_DENIED_LINES: Final = 100
_REMEMBERED: Final = 16
_TYPE_NAMES: Final = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "TransactionalId",
    ResourceType.DELEGATION_TOKEN: "DelegationToken",
    ResourceType.USER: "User",
}


@lru_cache(maxsize=4096)
def host_address(peer: str) -> str:
    """The address of a peer (`address:port`) in the form that ACLs have, which is that of Java's getHostAddress: an
    IPv6 address is written in full, and an IPv4-mapped one as an IPv4 address.
    """
    text = peer.rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in address.exploded.partition("%")[0].split(":"))
    return f"{groups}%{address.scope_id}" if address.scope_id else groups


def logs_what_is_allowed() -> bool:
    """Whether allowed operations are logged. If so, every resource of every request has to be checked."""
    return audit.logger.isEnabledFor(logging.DEBUG)


class Caller:
    """The sender of a request, for the checks of that request."""

    __slots__ = ("_authorizer", "_denied", "_host", "_over_limit", "_principal", "_request", "context")

    def __init__(
        self,
        authorizer: StandardAuthorizer,
        principal: str,
        host: str,
        request: str,
        over_limit: "deque[Caller]",
        context: RequestContext | None = None,
    ) -> None:
        """The caller adds itself to `over_limit` when it is denied more than MAX_DENIED_LINES."""
        self._authorizer = authorizer
        self._principal = principal
        self._host = host
        self._request = request
        self._over_limit = over_limit
        self._denied = 0
        self.context = context

    def is_authorized(
        self, operation: AclOperation, resource_type: ResourceType, name: str, *, quietly: bool = False, count: int = 1
    ) -> bool:
        """Whether the client may do this. `quietly`: a denial is not logged, because the response only omits the
        resource, or another permission is enough. `count`: how often the request names the resource.
        """
        verdict = self._authorizer.authorize(self._principal, self._host, operation, resource_type, name)
        if verdict.allowed:
            if logs_what_is_allowed():
                self._log(verdict, operation, resource_type, name, count)
        elif not quietly:
            self._denied += 1
            if self._denied <= MAX_DENIED_LINES:
                self._log(verdict, operation, resource_type, name, count)
            elif self._denied == MAX_DENIED_LINES + 1:
                # Called when the whole request, or the current piece of it, is checked.
                asyncio.get_running_loop().call_soon(self._log_others)
                if self.context is not None and self not in self._over_limit:
                    self._over_limit.append(self)
        return verdict.allowed

    def is_authorized_on_cluster(self, operation: AclOperation, *, quietly: bool = False) -> bool:
        return self.is_authorized(operation, ResourceType.CLUSTER, CLUSTER_NAME, quietly=quietly)

    def is_authorized_on_any(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether the operation is allowed on at least one resource of the type."""
        return self._authorizer.authorize_by_resource_type(self._principal, self._host, operation, resource_type)

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """All operations that are allowed on the resource, as bits. These checks are not logged."""
        bits = 0
        for operation in operations_of(resource_type):
            if self._authorizer.authorize(self._principal, self._host, operation, resource_type, name).allowed:
                bits |= 1 << operation
        return bits

    def _log_others(self) -> None:
        audit.info(
            "further denials were not logged",
            principal=self._principal,
            host=self._host,
            request=self._request,
            resources=self._denied - MAX_DENIED_LINES,
        )
        self._denied = MAX_DENIED_LINES

    def _log(
        self, verdict: Verdict, operation: AclOperation, resource_type: ResourceType, name: str, count: int
    ) -> None:
        write = audit.debug if verdict.allowed else audit.info
        write(
            "allowed" if verdict.allowed else "denied",
            principal=self._principal,
            operation=operation.name,
            host=self._host,
            resource=f"{_TYPE_NAMES[resource_type]}:{PatternType.LITERAL.name}:{name}",
            request=self._request,
            resource_ref_count=count,
            rule=str(verdict.rule),
        )


class Access:
    """The authorizer of a broker, and the callers that it checks."""

    def __init__(self, authorizer: StandardAuthorizer) -> None:
        self.authorizer = authorizer
        self._over_limit: deque[Caller] = deque(maxlen=_REMEMBERED)
        """The callers over the limit. Found again by their context: a large request comes in pieces, with the same
        context.
        """

    def image_changed(self, change: ImageChange) -> None:
        old, new = change.old.acls, change.new.acls
        if new is not old:
            added, removed = acls_between(old, new)
            self.authorizer.update(added.values(), (old[acl_id] for acl_id in removed))

    def caller(self, principal: Principal, peer: str, api_key: ApiKey) -> Caller:
        return Caller(self.authorizer, str(principal), host_address(peer), api_name(api_key), self._over_limit)

    def caller_of(self, context: RequestContext) -> Caller:
        for caller in self._over_limit:
            if caller.context is context:
                return caller
        principal, host, name = str(context.principal), host_address(context.peer), api_name(context.api_key)
        return Caller(self.authorizer, principal, host, name, self._over_limit, context)

    def describes_of(self, principal: Principal, peer: str) -> Callable[[str], bool]:
        """Which topics a client may describe: a function that applies the ACLs at the time of each call."""
        caller = self.caller(principal, peer, ApiKey.CONSUMER_GROUP_HEARTBEAT)
        return lambda topic: caller.is_authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic, quietly=True)

    # -- the operations that a client is authorized for, where responses have them -----------------------------------

    def of_topic(self, context: RequestContext, name: str) -> int:
        return self.caller_of(context).operations(ResourceType.TOPIC, name)

    def of_group(self, context: RequestContext, group_id: str) -> int:
        return self.caller_of(context).operations(ResourceType.GROUP, group_id)

    def of_cluster(self, context: RequestContext) -> int:
        caller = self.caller_of(context)
        if not caller.is_authorized_on_cluster(AclOperation.DESCRIBE):
            return 0
        return caller.operations(ResourceType.CLUSTER, CLUSTER_NAME)
