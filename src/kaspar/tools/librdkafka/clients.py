"""Creates librdkafka's clients from properties of Java's clients, and handles the errors that they report."""

import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from kaspar.base.errors import ErrorCode, InvalidSetting, KasparError, Refused
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.kafka_errors import exception_text
from kaspar.tools.librdkafka import consumer_settings, producer_settings
from kaspar.tools.librdkafka.translation import Translated

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

_ERRORS: Final = "org.apache.kafka.common.errors"
_FAILED_CONNECTION: Final = re.compile(
    r"^(?:\w+://)?(?P<broker>[^/]+)/\S+: (?P<reason>.*?)(?: \(after \d+ms.*)?$", re.DOTALL
)
_CONNECT: Final = re.compile(r"^Connect to \S+ failed: ")
_SASL: Final = re.compile(r"^SASL authentication error: ")
_Client = TypeVar("_Client")


class AuthenticationFailed(KasparError):
    """The broker or the client does not accept the identity of the other, so a retry would not help."""


class ConnectionErrors:
    """librdkafka's error callback. Connection errors are printed once for each broker and reason. `failure` is an error
    that retries cannot solve.
    """

    def __init__(self) -> None:
        self.failure: AuthenticationFailed | None = None
        self._printed: set[str] = set()

    def __call__(self, error: "KafkaError") -> None:
        from confluent_kafka import KafkaError

        match = _FAILED_CONNECTION.match(error.str())
        broker, reason = (match["broker"], match["reason"]) if match else ("the cluster", error.str())
        code = error.code()
        if code == KafkaError._AUTHENTICATION:
            self.failure = AuthenticationFailed(f"{_ERRORS}.SaslAuthenticationException: {_SASL.sub('', reason)}")
        elif code == KafkaError._SSL:
            self.failure = AuthenticationFailed(f"{_ERRORS}.SslAuthenticationException: SSL handshake failed: {reason}")
        elif code in (KafkaError._TRANSPORT, KafkaError._RESOLVE):
            sentence = f"No connection to {broker} yet ({_CONNECT.sub('', reason)}); trying again."
            if sentence not in self._printed:
                self._printed.add(sentence)
                print(sentence, file=sys.stderr, flush=True)

    def check(self) -> None:
        """Raises AuthenticationFailed."""
        if self.failure is not None:
            raise self.failure


def open_producer(
    properties: Mapping[str, str], errors: ConnectionErrors, more: Mapping[str, object] | None = None
) -> "Producer":
    """Create a producer, and print warnings. `more` are librdkafka's own settings. Raises CommandFailed."""
    _require_confluent_kafka()
    from confluent_kafka import Producer

    return _opened(Producer, producer_settings, properties, errors, more or {})


def open_consumer(
    properties: Mapping[str, str], errors: ConnectionErrors, more: Mapping[str, object] | None = None
) -> "Consumer":
    """Create a consumer, and print warnings. `more` are librdkafka's own settings. Raises CommandFailed."""
    _require_confluent_kafka()
    from confluent_kafka import Consumer

    return _opened(Consumer, consumer_settings, properties, errors, more or {})


def error_text(error: "KafkaError") -> str:
    """An error of librdkafka as a Java client would print it, where Java has the same error."""
    from confluent_kafka import KafkaError

    if error.code() > 0:
        try:
            code = ErrorCode(error.code())
        except ValueError:
            return error.str()
        return exception_text(Refused(code, code.name))
    if error.code() in (KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE):
        return f"{_ERRORS}.TimeoutException: {error.str()}"
    return error.str()


def _opened(
    make: Callable[[dict[str, object]], _Client],
    translate: Callable[[Mapping[str, str]], Translated],
    properties: Mapping[str, str],
    errors: ConnectionErrors,
    more: Mapping[str, object],
) -> _Client:
    from confluent_kafka import KafkaException

    try:
        translated = translate(properties)
    except InvalidSetting as problem:
        raise CommandFailed(str(problem)) from None
    for sentence in translated.warnings:
        print(f"WARN {sentence}", file=sys.stderr)
    try:
        # librdkafka also reports what it logs.
        return make({**translated.settings, "log_level": 0, "error_cb": errors, **more})
    except KafkaException as problem:
        raise CommandFailed(problem.args[0].str()) from None
    except ValueError as problem:
        raise CommandFailed(str(problem)) from None


def _require_confluent_kafka() -> None:
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise CommandFailed(
            "This command needs confluent-kafka, which is not installed: pip install 'kaspar[tools]'"
        ) from None
