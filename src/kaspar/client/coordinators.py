"""Requests to the coordinator of a group or transactional id: decisions for both shells, as steps (client/steps.py).

If the response says that the coordinator is loading, moving to another broker, or not created yet, the request is sent
again until the client's timeout. A request whose response was lost may have been handled: only the caller knows whether
it may be sent twice.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.cluster_core import RETRY_BACKOFF_S, ClusterCore
from kaspar.client.steps import Address, AnyResponse, Steps, Wait, error_code_of
from kaspar.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kaspar.protocol.schema import Message

MOVING = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""The coordinator is not ready, or another broker is the coordinator: it is looked up again."""


class CoordinatorKind(IntEnum):
    """The key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


def request_coordinator(
    cluster: ClusterCore,
    kind: CoordinatorKind,
    key: str,
    message: Message,
    response_class: type[AnyResponse],
    version: int | None = None,
    *,
    code_of: Callable[[AnyResponse], int] = error_code_of,
    retry_on: frozenset[ErrorCode] = MOVING,
    resend: bool = False,
) -> Steps[AnyResponse]:
    """The coordinator's response. The request is sent again for the error codes in `retry_on`; the caller handles
    others.

    Raises Refused if no coordinator responds in time, OSError if none can be reached. With `resend` the request is also
    sent again if its response is lost; otherwise a lost response raises ConnectionError or TimeoutError.
    """
    deadline = cluster.clock_s() + cluster.timeout_s
    while True:
        address = None
        try:
            address = yield from _find_coordinator(cluster, kind, key)
            response = yield from cluster.request_at(address, message, response_class, version)
            code = code_of(response)
            if code not in retry_on:
                return response
            failure: Exception = Refused(ErrorCode(code), f"the coordinator of {key!r}: {ErrorCode(code).name}")
            if code in MOVING:
                cluster.forget_coordinator(kind, key)
        except Refused as refused:
            if refused.code not in MOVING:
                raise
            failure = refused
        except OSError as error:
            cluster.forget_coordinator(kind, key)
            if address is not None and not resend and not isinstance(error, ConnectionRefusedError):
                raise
            failure = error
        if cluster.clock_s() > deadline:
            raise failure
        yield Wait(RETRY_BACKOFF_S)


def find_coordinators(cluster: ClusterCore, kind: CoordinatorKind, keys: Sequence[str]) -> Steps[dict[str, Address]]:
    """The address of each key's coordinator. Unknown coordinators are looked up with one request."""
    unknown = [key for key in dict.fromkeys(keys) if cluster.coordinator_of(kind, key) is None]
    if len(unknown) > 1:
        response = yield from cluster.request(
            FindCoordinatorRequest(key=unknown[0], key_type=kind, coordinator_keys=tuple(unknown)),
            FindCoordinatorResponse,
        )
        for found in response.coordinators:  # empty before version 4, where a request has only one key
            _apply(cluster, kind, found.key, found)
    addresses = {}
    for key in keys:
        addresses[key] = yield from _find_coordinator(cluster, kind, key)
    return addresses


def _find_coordinator(cluster: ClusterCore, kind: CoordinatorKind, key: str) -> Steps[Address]:
    known = cluster.coordinator_of(kind, key)
    if known is not None:
        return known
    response = yield from cluster.request(
        FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=(key,)), FindCoordinatorResponse
    )
    # Before version 4 the response itself contains the fields of the coordinator.
    return _apply(cluster, kind, key, response.coordinators[0] if response.coordinators else response)


def _apply(
    cluster: ClusterCore, kind: CoordinatorKind, key: str, found: Coordinator | FindCoordinatorResponse
) -> Address:
    if found.error_code != ErrorCode.NONE:
        code = ErrorCode(found.error_code)
        raise Refused(code, found.error_message or f"looking up the coordinator of {key!r}: {code.name}")
    cluster.set_coordinator(kind, key, (found.host, found.port))
    return found.host, found.port
