"""The names and messages of errors in the commands' output are those of Kafka's exceptions."""

from kaspar.base.errors import ErrorCode, Refused
from kaspar.tools.kafka_errors import exception_text
from tests.peers.kafka_tools import KafkaTools


def test_every_error_code_has_the_name_of_its_exception(kafka_tools: KafkaTools) -> None:
    rows = [line.split("\t") for line in kafka_tools.run("ErrorTable").output.splitlines()]
    assert len(rows) > 100
    for name, exception, message in rows:
        code = ErrorCode[name]
        if code is ErrorCode.NONE:
            continue
        assert exception_text(Refused(code, "why")) == f"{exception}: why"
        assert exception_text(Refused(code, code.name)) == f"{exception}: {message}"
