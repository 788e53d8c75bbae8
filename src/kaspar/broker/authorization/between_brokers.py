"""Kaspar's own APIs between brokers: where these have a listener of their own, no other listener serves them.

With or without an authorizer: what a broker tells another, such as credentials, is not for clients.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.authorization import cluster
from kaspar.network.api import Handler, HandlerResult, RequestContext
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.schema import Message

_REFUSALS: Final[Mapping[ApiKey, Callable[[RequestContext, Any, ErrorCode], Message]]] = MappingProxyType(
    {
        ApiKey.FOLLOW_IMAGE: cluster.FOLLOW_IMAGE.refuse,
        ApiKey.SUBMIT_EVENT: cluster.SUBMIT_EVENT.refuse,
        ApiKey.WRITE_TXN_FENCES: cluster.WRITE_TXN_FENCES.refuse,
    }
)


def only_on(listener: str, key: ApiKey, handler: Handler) -> Handler:
    refuse = _REFUSALS[key]

    def handle(context: RequestContext, request: Any) -> HandlerResult:
        if context.listener == listener:
            return handler(context, request)
        return refuse(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    return handle
