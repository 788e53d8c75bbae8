"""FindCoordinator says of every key that no coordinator is available, in the form of each version."""

from typing import cast

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import SERVED, RequestContext
from kaspar.broker.handlers.find_coordinator import GROUP, SHARE, TRANSACTION, handle
from kaspar.broker.server import Broker
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

NO_BROKER = cast(Broker, None)  # the answer does not depend on it


def ask(version: int, key_type: int) -> FindCoordinatorResponse:
    context = RequestContext(ApiKey.FIND_COORDINATOR, version, 1, "client", "127.0.0.1:1", "PLAINTEXT")
    request = FindCoordinatorRequest(key="one", key_type=key_type, coordinator_keys=("one", "two"))
    return handle(NO_BROKER, context, request)


@pytest.mark.parametrize("version", range(4))
def test_one_key_gets_one_answer(version: int) -> None:
    answer = ask(version, GROUP)
    assert (answer.error_code, answer.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


@pytest.mark.parametrize("version", range(4, 7))
def test_several_keys_get_an_answer_each(version: int) -> None:
    answer = ask(version, TRANSACTION)
    assert [(each.key, each.error_code, each.node_id) for each in answer.coordinators] == [
        ("one", ErrorCode.COORDINATOR_NOT_AVAILABLE, -1),
        ("two", ErrorCode.COORDINATOR_NOT_AVAILABLE, -1),
    ]


def test_a_kind_that_the_version_does_not_know_is_refused() -> None:
    assert ask(6, SHARE).coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert ask(5, SHARE).coordinators[0].error_code == ErrorCode.INVALID_REQUEST
    assert ask(1, 7).error_code == ErrorCode.INVALID_REQUEST


def test_it_is_announced_from_version_0_which_librdkafka_looks_for() -> None:
    served = SERVED[ApiKey.FIND_COORDINATOR]
    assert (served.first_version, served.last_version) == (0, 6)
