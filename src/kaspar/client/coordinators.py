"""Asking the coordinator of a group or of a transactional id: finding it, and asking again while it is on the move.

A coordinator loads, moves to another broker, or comes to be with the first question; its answers say so, and the
question is put again until the client's time is up. A question whose answer was lost may have been heard: only the
caller knows whether it may be put twice.
"""

import time
from collections.abc import Callable, Sequence
from enum import IntEnum

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.cluster import AnyAnswer, Client
from kaspar.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kaspar.protocol.schema import Message

MOVING = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
_BACKOFF_S = 0.05
_MOST_KNOWN = 10_000  # places that a client remembers: a process that lives long asks for ever new keys


class CoordinatorKind(IntEnum):
    """The key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


def code_of_answer(answer: Message) -> int:
    """The error code that stands at the top of most answers."""
    code: int = getattr(answer, "error_code", ErrorCode.NONE)
    return code


def at_coordinator(
    client: Client,
    kind: CoordinatorKind,
    key: str,
    message: Message,
    answer_class: type[AnyAnswer],
    version: int | None = None,
    *,
    code_of: Callable[[AnyAnswer], int] = code_of_answer,
    again: frozenset[ErrorCode] = MOVING,
    resend: bool = False,
) -> AnyAnswer:
    """The coordinator's answer, whatever its code is, if that is none of those to ask `again` for.

    Raises Refused if no coordinator answers in time, OSError if the way there is broken. With `resend` the question is
    also put again when its answer was lost; without, that is a ConnectionError or TimeoutError.
    """
    deadline = time.monotonic() + client.timeout_s
    while True:
        address = None
        try:
            address = _find(client, kind, key)
            answer = client.request_at(address, message, answer_class, version)
            code = code_of(answer)
            if code not in again:
                return answer
            refusal = Refused(ErrorCode(code), f"the coordinator of {key!r} answers {ErrorCode(code).name}")
            if code in MOVING:
                client.coordinators.pop((kind, key), None)
            failure: Exception = refusal
        except Refused as refused:
            if refused.code not in MOVING:
                raise
            failure = refused
        except OSError as error:
            client.coordinators.pop((kind, key), None)
            if address is not None and not resend and not isinstance(error, ConnectionRefusedError):
                raise
            failure = error
        if time.monotonic() > deadline:
            raise failure
        time.sleep(_BACKOFF_S)


def find_coordinators(client: Client, kind: CoordinatorKind, keys: Sequence[str]) -> dict[str, tuple[str, int]]:
    """The host and port of each key's coordinator, those that are not known yet by one question for all of them."""
    unknown = [key for key in dict.fromkeys(keys) if (kind, key) not in client.coordinators]
    if len(unknown) > 1:
        answer = client.request(
            FindCoordinatorRequest(key=unknown[0], key_type=kind, coordinator_keys=tuple(unknown)),
            FindCoordinatorResponse,
        )
        for found in answer.coordinators:  # none before version 4, which knows one key only
            _take(client, kind, found.key, found)
    return {key: _find(client, kind, key) for key in keys}


def _find(client: Client, kind: CoordinatorKind, key: str) -> tuple[str, int]:
    known = client.coordinators.get((kind, key))
    if known is not None:
        return known
    answer = client.request(
        FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=(key,)), FindCoordinatorResponse
    )
    # Before version 4 the one coordinator stands in the answer itself.
    return _take(client, kind, key, answer.coordinators[0] if answer.coordinators else answer)


def _take(
    client: Client, kind: CoordinatorKind, key: str, found: Coordinator | FindCoordinatorResponse
) -> tuple[str, int]:
    if found.error_code != ErrorCode.NONE:
        code = ErrorCode(found.error_code)
        raise Refused(code, found.error_message or f"looking for the coordinator of {key!r}: {code.name}")
    if len(client.coordinators) >= _MOST_KNOWN:
        client.coordinators.clear()
    client.coordinators[kind, key] = found.host, found.port
    return found.host, found.port
