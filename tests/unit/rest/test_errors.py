"""What brokers and librdkafka refuse, as errors of the API."""

import re
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from kaspar.base.errors import ErrorCode, Refused
from kaspar.rest import errors
from kaspar.rest.errors import ErrorKind, classify, from_refusal
from kaspar.rest.producing import Undelivered
from kaspar.rest.v3 import errors as v3_errors

PAGE = Path(__file__).parents[3] / "docs" / "rest.md"


def declared() -> list[ErrorKind]:
    return [each for module in (errors, v3_errors) for each in vars(module).values() if isinstance(each, ErrorKind)]


def test_the_page_lists_every_code_and_no_other() -> None:
    table = PAGE.read_text().partition("### Errors")[2].partition("### ")[0]
    listed = {int(code) for row in re.findall(r"^\| ([0-9, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    assert listed == {kind.code for kind in declared()}


def test_a_code_begins_with_its_status() -> None:
    exceptions = {kind.code for kind in declared() if not str(kind.code).startswith(str(kind.status))}
    assert exceptions == {40001}


@pytest.mark.parametrize(
    ("code", "status", "error_code"),
    [
        (ErrorCode.SASL_AUTHENTICATION_FAILED, 401, 40101),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 403, 40301),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, 403, 40301),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 403, 40301),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 404, 40403),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, 400, 40002),
        (ErrorCode.INVALID_REPLICATION_FACTOR, 400, 40002),
        (ErrorCode.TOPIC_ALREADY_EXISTS, 400, 40002),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 429, 42901),
        (ErrorCode.MESSAGE_TOO_LARGE, 500, 50002),
        (ErrorCode.REQUEST_TIMED_OUT, 500, 50003),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 500, 50003),
        (ErrorCode.BROKER_NOT_AVAILABLE, 503, 50302),
    ],
)
def test_an_error_of_a_broker_has_a_status_and_a_code(code: ErrorCode, status: int, error_code: int) -> None:
    error = from_refusal(Refused(code, "because"))
    assert (error.kind.status, error.kind.code, error.message) == (status, error_code, "because")
    assert classify(KafkaError(code))[0] == error.kind


def test_a_refusal_without_a_message_has_that_of_kafkas_clients() -> None:
    code = ErrorCode.TOPIC_ALREADY_EXISTS
    assert from_refusal(Refused(code, code.name)).message == "Topic with this name already exists."


@pytest.mark.parametrize(
    ("number", "error_code", "is_retriable"),
    [
        (KafkaError._MSG_TIMED_OUT, 50003, True),
        (KafkaError._TRANSPORT, 50003, True),
        (KafkaError._QUEUE_FULL, 50003, True),
        (KafkaError._UNKNOWN_PARTITION, 40403, True),
        (KafkaError._UNKNOWN_TOPIC, 40403, True),
        (KafkaError._AUTHENTICATION, 40101, False),
        (KafkaError._PURGE_QUEUE, 50002, False),
        (KafkaError.MSG_SIZE_TOO_LARGE, 50002, False),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, 40301, False),
        (KafkaError.NOT_LEADER_FOR_PARTITION, 50003, True),
        (9999, 50002, False),
    ],
)
def test_a_record_may_be_sent_again_if_its_error_passes(number: int, error_code: int, is_retriable: bool) -> None:
    outcome = Undelivered(*classify(KafkaError(number)))
    assert (outcome.kind.code, outcome.is_retriable) == (error_code, is_retriable)
    assert outcome.message
