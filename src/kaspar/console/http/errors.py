"""Errors as the page gets them: an HTTP status, and a sentence with Kafka's name of the error or HTTP's phrase.

{"message": "There is no topic orders.", "code": "UNKNOWN_TOPIC_OR_PARTITION"}
"""

from http import HTTPStatus
from typing import Final

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.callers.identities import NoCredentials
from kaspar.client.core import UnsupportedByPeer
from kaspar.console.problems import Conflict, NotThere, PartlyRefused, Unacceptable, Unfinished
from kaspar.tools.error_messages import DEFAULT_MESSAGES
from kaspar.web.errors import ErrorBody

_FORBIDDEN: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
    }
)
_MISSING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.RESOURCE_NOT_FOUND,
    }
)
_CONFLICTS: Final = frozenset({ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NON_EMPTY_GROUP, ErrorCode.DUPLICATE_RESOURCE})
_STATUSES: Final = (
    (Unacceptable, 400),
    (NotThere, 404),
    (Conflict, 409),
    (NoCredentials, 401),
    (UnsupportedByPeer, 501),
)
_REFUSALS: Final = (Unacceptable, NotThere, Conflict, NoCredentials, UnsupportedByPeer, ClientDisconnect)
_UNDECIDED: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
"""Errors of a broker, or of the client if there was no response, after which the change may have been made."""
_UNREACHABLE: Final = "No broker can be reached"
_MAY_BE_MADE: Final = "The change may have been made all the same."


class CallFailed(KasparError):
    """A call that ends with an error. Its text is the sentence for the user."""

    def __init__(self, status: int, message: str, code: str = "", *, is_refusal: bool = True) -> None:
        """`is_refusal` is false if the change may have been made all the same."""
        super().__init__(message)
        self.status = status
        self.is_refusal = is_refusal
        self.code = code or HTTPStatus(status).phrase

    def response(self) -> Response:
        return Response(error_content(str(self), self.code), self.status, media_type="application/json")


def failure_of(problem: Exception, caller: str) -> CallFailed | None:
    """The response for an exception; None for a bug. `caller` is the user that the broker sees: "The user alice"."""
    match problem:
        case CallFailed():
            return problem
        case Refused():
            return _refusal(problem, caller)
        case OSError():
            return CallFailed(503, f"{_UNREACHABLE}: {problem}.")
        case KasparError():
            status = next((status for kind, status in _STATUSES if isinstance(problem, kind)), 502)
            return CallFailed(status, str(problem))
        case _:
            return None


def failure_of_change(problem: Exception, caller: str) -> CallFailed | None:
    """Like `failure_of`, but the sentence says so if the change may have been made."""
    failure = failure_of(problem, caller)
    if failure is None or is_refusal(problem) or isinstance(problem, PartlyRefused | Unfinished):
        return failure
    return CallFailed(failure.status, f"{failure} {_MAY_BE_MADE}", failure.code, is_refusal=False)


def is_refusal(problem: Exception) -> bool:
    """Whether the exception means that the change was not made. Otherwise it may have been made: the request was sent,
    and there was no response, or none that could be understood."""
    match problem:
        case CallFailed():
            return problem.is_refusal
        case PartlyRefused() | Unfinished():
            return False
        case Refused():
            return problem.code not in _UNDECIDED
        case _:
            return isinstance(problem, _REFUSALS)


def _refusal(refused: Refused, caller: str) -> CallFailed:
    code, text = refused.code, refusal_text(refused)
    if code is ErrorCode.REQUEST_TIMED_OUT:
        return CallFailed(503, f"{_UNREACHABLE}. {text}", code.name)
    if code in _FORBIDDEN:
        return CallFailed(403, f"{caller} is not permitted to do this. {text}", code.name)
    for codes, status in ((_MISSING, 404), (_CONFLICTS, 409), (RETRIABLE, 503)):
        if code in codes:
            return CallFailed(status, text, code.name)
    return CallFailed(400, text, code.name)


def refusal_text(refused: Refused) -> str:
    """The message of the error. If the response has only a code, it is the client's default message for that code."""
    if refused.message and refused.message != refused.code.name:
        return refused.message
    return DEFAULT_MESSAGES.get(refused.code, refused.code.name)


def error_content(message: str, code: str) -> bytes:
    return msgspec.json.encode({"message": message, "code": code})


def error_form(status: int, message: str) -> ErrorBody:
    """The body of an error outside of the application (kaspar.web.errors)."""
    return ErrorBody("application/json", error_content(message, HTTPStatus(status).phrase))
