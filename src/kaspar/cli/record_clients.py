"""Settings for librdkafka clients, which handle records one by one, from a session's Java client properties."""

import contextlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.cli.failures import CommandFailed
from kaspar.cli.session import OF_REGISTRY, Session

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from kaspar.tools.librdkafka import Translated

_PERMISSIONS: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


def settings_of_consumer(session: Session, properties: Mapping[str, str]) -> dict[str, Any]:
    """The consumer's settings. `properties` override those of the session. Properties without effect are reported on
    standard error.
    """
    from kaspar.tools.librdkafka import consumer_settings

    return _settings(session, consumer_settings(_merged(session, properties)))


def settings_of_producer(session: Session, properties: Mapping[str, str]) -> dict[str, Any]:
    from kaspar.tools.librdkafka import producer_settings

    return _settings(session, producer_settings(_merged(session, properties)))


def problem_of(error: "KafkaError") -> KasparError:
    """Convert an error of a broker or of librdkafka to our errors, which have an exit code and advice."""
    if error.code() > 0:
        with contextlib.suppress(ValueError):  # a code of a newer version of Kafka
            return Refused(ErrorCode(error.code()), error.str())
    if error.name() == "_AUTHENTICATION":
        return Refused(ErrorCode.SASL_AUTHENTICATION_FAILED, error.str())
    return CommandFailed(error.str())


def is_permission(error: "KafkaError") -> bool:
    """Whether every further record would fail with the same error."""
    return error.code() in _PERMISSIONS


def require_client() -> None:
    """Raise KasparError with a message for users if confluent-kafka is not installed."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise KasparError("this command needs confluent-kafka: pip install 'kaspar[tools]'") from None


def _merged(session: Session, properties: Mapping[str, str]) -> dict[str, str]:
    of_brokers = {name: value for name, value in session.properties.items() if not name.startswith(OF_REGISTRY)}
    return {"client.id": "kaspar", **of_brokers, **properties}


def _settings(session: Session, translated: "Translated") -> dict[str, Any]:
    for sentence in translated.warnings:
        print(f"kaspar: {sentence}", file=sys.stderr)
    for setting in translated.settings.values():
        str(setting).encode()  # raises UnicodeEncodeError, where confluent-kafka would abort the process
    # librdkafka's log on standard error is turned off: it is for programmers, and users get the errors.
    return {**translated.settings, "log_level": 0, "error_cb": _Unreachable(session.servers)}


class _Unreachable:
    """Reports once that no broker responds, because the client keeps retrying and the command would seem to hang."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._said = False

    def __call__(self, error: "KafkaError") -> None:
        if error.name() == "_ALL_BROKERS_DOWN" and not self._said:
            self._said = True
            with contextlib.suppress(OSError):  # callbacks must not raise exceptions
                print(f"kaspar: no broker responds at {self._servers}; retrying", file=sys.stderr, flush=True)
