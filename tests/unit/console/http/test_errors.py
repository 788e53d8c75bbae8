"""What goes wrong, as the page gets it."""

import json

import pytest

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.client.core import UnsupportedByPeer
from kaspar.console.http.errors import CallFailed, error_form, failure_of
from kaspar.console.problems import Conflict, NotThere, Unacceptable

ALICE = "The user alice"


@pytest.mark.parametrize(
    ("problem", "status", "code"),
    [
        (Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no"), 403, "TOPIC_AUTHORIZATION_FAILED"),
        (Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no"), 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        (Refused(ErrorCode.TOPIC_ALREADY_EXISTS, "no"), 409, "TOPIC_ALREADY_EXISTS"),
        (Refused(ErrorCode.INVALID_CONFIG, "no"), 400, "INVALID_CONFIG"),
        (Refused(ErrorCode.REQUEST_TIMED_OUT, "no"), 503, "REQUEST_TIMED_OUT"),
        (Refused(ErrorCode.NOT_CONTROLLER, "no"), 503, "NOT_CONTROLLER"),
        (Unacceptable("no"), 400, "Bad Request"),
        (NotThere("no"), 404, "Not Found"),
        (Conflict("no"), 409, "Conflict"),
        (UnsupportedByPeer("no"), 501, "Not Implemented"),
        (ConnectionRefusedError("no"), 503, "Service Unavailable"),
        (KasparError("no"), 502, "Bad Gateway"),
        (CallFailed(418, "no"), 418, "I'm a Teapot"),
    ],
)
def test_each_kind_has_a_status_and_a_code(problem: Exception, status: int, code: str) -> None:
    failure = failure_of(problem, ALICE)
    assert failure is not None
    assert (failure.status, failure.code) == (status, code)
    body = json.loads(bytes(failure.response().body))
    assert body == {"message": str(failure), "code": code}


def test_what_is_not_permitted_says_to_whom() -> None:
    failure = failure_of(Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED, "GROUP_AUTHORIZATION_FAILED"), ALICE)
    assert str(failure) == "The user alice is not permitted to do this. Group authorization failed."


def test_a_response_without_a_message_gets_kafkas() -> None:
    failure = failure_of(Refused(ErrorCode.INVALID_CONFIG, "INVALID_CONFIG"), ALICE)
    assert str(failure) == "Configuration is invalid."


def test_a_bug_is_not_an_error_of_the_api() -> None:
    assert failure_of(ValueError("a bug"), ALICE) is None


def test_errors_outside_of_the_application_have_the_same_form() -> None:
    assert json.loads(error_form(401, "Unauthorized").content) == {"message": "Unauthorized", "code": "Unauthorized"}
