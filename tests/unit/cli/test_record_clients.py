"""The client of produce and consume: whether it is there, and its errors as ours."""

import sys

import pytest
from confluent_kafka import KafkaError

from kaspar.cli.failures import FAILED, NOT_FOUND, NOT_PERMITTED, explain
from kaspar.cli.main import main
from kaspar.cli.record_clients import is_permission, problem_of


@pytest.mark.parametrize("words", [["consume", "orders"], ["produce", "orders", "--value", "x"]])
def test_missing_client_is_told_with_what_installs_it(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    assert main(words) == FAILED
    assert capsys.readouterr().err == "kaspar: this command needs confluent-kafka: pip install 'kaspar[tools]'\n"


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, NOT_PERMITTED),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, NOT_PERMITTED),
        (KafkaError._AUTHENTICATION, NOT_PERMITTED),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, NOT_FOUND),
        (KafkaError.MSG_SIZE_TOO_LARGE, FAILED),
        (KafkaError._FAIL, FAILED),
        (30_000, FAILED),
    ],
)
def test_errors_have_the_exit_codes_of_all_commands(code: int, exit_code: int) -> None:
    assert explain(problem_of(KafkaError(code, "a sentence"))).exit_code == exit_code


def test_only_a_missing_permission_ends_everything() -> None:
    assert is_permission(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert not is_permission(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
