"""Calls about many groups or transactional ids at once: each coordinator gets one request for all of its keys.

Errors of single keys are part of the result. A coordinator may be loading or moving to another broker: keys that it
refuses for that reason are looked up and requested again, until the admin's timeout.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.session import RETRY_BACKOFF_S, Admin, refusal
from kaspar.client.coordinators import MOVING, CoordinatorKind
from kaspar.client.steps import Address
from kaspar.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_Result = TypeVar("_Result")


class CoordinatorNode(NamedTuple):
    broker_id: int
    host: str
    port: int

    @property
    def address(self) -> Address:
        return self.host, self.port


Ask = Callable[[CoordinatorNode, Sequence[str]], Mapping[str, _Result | Refused]]
"""Sends one request about these keys to their coordinator, and returns the result for each key."""


def ask_coordinators(
    admin: Admin,
    call: str,
    kind: CoordinatorKind,
    keys: Collection[str],
    ask: Ask[_Result],
    *,
    retry_on: frozenset[ErrorCode] = MOVING,
) -> dict[str, _Result | Refused]:
    """The result for each key, in the order of the keys. `call` is the name of the call in Kafka's Admin."""
    passing = retry_on | {ErrorCode.NETWORK_EXCEPTION}
    deadline = time.monotonic() + admin.api_timeout_s
    results: dict[str, _Result | Refused] = {}
    pending = list(dict.fromkeys(keys))
    while pending:
        for node, together in _by_coordinator(admin, call, kind, pending, results).items():
            results.update(_ask_one(admin, call, node, together, ask))
        pending = [key for key in pending if _has_code(results[key], passing)]
        if not pending or time.monotonic() + RETRY_BACKOFF_S > deadline:
            break
        time.sleep(RETRY_BACKOFF_S)
    return {key: results[key] for key in dict.fromkeys(keys)}


def _has_code(result: object, codes: frozenset[ErrorCode]) -> bool:
    return isinstance(result, Refused) and result.code in codes


def _ask_one(
    admin: Admin, call: str, node: CoordinatorNode, keys: Sequence[str], ask: Ask[_Result]
) -> Mapping[str, _Result | Refused]:
    try:
        return ask(node, keys)
    except OSError as error:
        admin.report_unreachable(error)
        return dict.fromkeys(keys, Refused(ErrorCode.NETWORK_EXCEPTION, f"{call}: {error.strerror or error}"))


def _by_coordinator(
    admin: Admin,
    call: str,
    kind: CoordinatorKind,
    keys: Sequence[str],
    results: dict[str, _Result | Refused],
) -> dict[CoordinatorNode, list[str]]:
    """The keys of each coordinator. If looking up a coordinator fails, the error is put into `results`."""
    nodes: dict[CoordinatorNode, list[str]] = {}
    for key, found in _find(admin, f"{call}(api=FIND_COORDINATOR)", kind, keys).items():
        if isinstance(found, Refused):
            results[key] = found
        else:
            nodes.setdefault(found, []).append(key)
    return nodes


def _find(admin: Admin, call: str, kind: CoordinatorKind, keys: Sequence[str]) -> dict[str, CoordinatorNode | Refused]:
    try:
        response = _ask_any(admin, call, kind, keys)
        if response.coordinators:
            return {each.key: _node(each) for each in response.coordinators}
        # Before version 4 a request has one key, and the response itself contains the fields of its coordinator.
        return {key: _node(_ask_any(admin, call, kind, [key])) for key in keys}
    except Refused as refused:
        return dict.fromkeys(keys, refused)


def _ask_any(admin: Admin, call: str, kind: CoordinatorKind, keys: Sequence[str]) -> FindCoordinatorResponse:
    request = FindCoordinatorRequest(key=keys[0], key_type=kind, coordinator_keys=tuple(keys))
    return admin.ask_any(call, request, FindCoordinatorResponse)


def _node(found: Coordinator | FindCoordinatorResponse) -> CoordinatorNode | Refused:
    return refusal(found.error_code, found.error_message) or CoordinatorNode(found.node_id, found.host, found.port)
