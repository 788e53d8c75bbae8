"""Restricts Kaspar's own APIs between brokers to the listener between brokers, if there is a separate one.

This holds with or without an authorizer: brokers send each other secrets such as credentials.
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
