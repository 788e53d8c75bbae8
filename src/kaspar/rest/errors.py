"""The errors of the API: an HTTP status, a code and a message, as in Confluent's proxy.

    {"error_code": 40401, "message": "Topic not found."}

An `ErrorKind` is a code with its status and text. Errors of brokers and librdkafka are converted here for whole
requests (`from_refusal`, `from_kafka_error`); for single records see `kaspar.rest.producing`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.tools.error_messages import DEFAULT_MESSAGES

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


@dataclass(frozen=True, slots=True)
class ErrorKind:
    status: int
    code: int
    text: str = ""
    """The start of the message, or all of it."""


BAD_REQUEST: Final = ErrorKind(400, 400)
INVALID_CONSUMER_CONSTRAINT: Final = ErrorKind(
    422, 40001, "Invalid consumer configuration. It does not abide by the constraints: "
)
KAFKA_BAD_REQUEST: Final = ErrorKind(400, 40002)
KAFKA_AUTHENTICATION: Final = ErrorKind(401, 40101)
KAFKA_AUTHORIZATION: Final = ErrorKind(403, 40301)
NOT_FOUND: Final = ErrorKind(404, 404, "HTTP 404 Not Found")
TOPIC_NOT_FOUND: Final = ErrorKind(404, 40401, "Topic not found.")
PARTITION_NOT_FOUND: Final = ErrorKind(404, 40402, "Partition not found.")
CONSUMER_INSTANCE_NOT_FOUND: Final = ErrorKind(404, 40403, "Consumer instance not found.")
UNKNOWN_TOPIC_OR_PARTITION: Final = ErrorKind(404, 40403)
METHOD_NOT_ALLOWED: Final = ErrorKind(405, 405, "HTTP 405 Method Not Allowed")
NOT_ACCEPTABLE: Final = ErrorKind(406, 406, "HTTP 406 Not Acceptable")
CONSUMER_FORMAT_MISMATCH: Final = ErrorKind(
    406, 40601, "The requested embedded data format does not match the deserializer for this consumer instance"
)
REGISTRY_FAILED: Final = ErrorKind(408, 40801)
CONSUMER_ALREADY_EXISTS: Final = ErrorKind(
    409, 40902, "Consumer with specified consumer ID already exists in the specified consumer group."
)
ILLEGAL_STATE: Final = ErrorKind(409, 40903, "Illegal state: ")
TOO_LARGE: Final = ErrorKind(413, 413)
UNSUPPORTED_MEDIA_TYPE: Final = ErrorKind(415, 415, "HTTP 415 Unsupported Media Type")
UNPROCESSABLE: Final = ErrorKind(422, 422)
KEY_SCHEMA_MISSING: Final = ErrorKind(422, 42201, "Request includes keys but does not include key schema")
VALUE_SCHEMA_MISSING: Final = ErrorKind(422, 42202, "Request includes values but does not include value schema")
JSON_CONVERSION: Final = ErrorKind(422, 42203, "Conversion of JSON to Object failed: ")
INVALID_CONSUMER_CONFIG: Final = ErrorKind(422, 42204, "Invalid consumer configuration: ")
INVALID_SCHEMA: Final = ErrorKind(422, 42205, "Invalid schema: ")
INVALID_PAYLOAD: Final = ErrorKind(422, 42206, "Payload error. ")
SERIALIZATION: Final = ErrorKind(422, 42207, "Error serializing message. ")
TOO_MANY_REQUESTS: Final = ErrorKind(429, 42901)
KAFKA: Final = ErrorKind(500, 50002)
KAFKA_RETRIABLE: Final = ErrorKind(500, 50003)
BROKER_NOT_AVAILABLE: Final = ErrorKind(503, 50302)


class RestError(KasparError):
    """An error that is returned to the client instead of a result."""

    def __init__(self, kind: ErrorKind, detail: str = "") -> None:
        self.kind = kind
        self.message = kind.text + detail
        super().__init__(self.message)


_AUTHENTICATION: Final = frozenset(
    {ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.ILLEGAL_SASL_STATE, ErrorCode.UNSUPPORTED_SASL_MECHANISM}
)
_AUTHORIZATION: Final = frozenset(code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED"))
_KINDS: Final = {
    ErrorCode.BROKER_NOT_AVAILABLE: BROKER_NOT_AVAILABLE,
    ErrorCode.INVALID_REPLICATION_FACTOR: KAFKA_BAD_REQUEST,
    ErrorCode.SECURITY_DISABLED: KAFKA_BAD_REQUEST,
    ErrorCode.UNSUPPORTED_VERSION: KAFKA_BAD_REQUEST,
    ErrorCode.INVALID_PARTITIONS: KAFKA_BAD_REQUEST,
    ErrorCode.INVALID_REQUEST: KAFKA_BAD_REQUEST,
    ErrorCode.UNKNOWN_SERVER_ERROR: KAFKA_BAD_REQUEST,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.POLICY_VIOLATION: KAFKA_BAD_REQUEST,
    ErrorCode.TOPIC_ALREADY_EXISTS: KAFKA_BAD_REQUEST,
    ErrorCode.INVALID_CONFIG: KAFKA_BAD_REQUEST,
    ErrorCode.TOPIC_DELETION_DISABLED: KAFKA_BAD_REQUEST,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: TOO_MANY_REQUESTS,
    ErrorCode.INVALID_TOPIC_EXCEPTION: KAFKA_BAD_REQUEST,
}
"""The same mapping as in Confluent's KafkaExceptionMapper."""


def kind_of(code: ErrorCode) -> ErrorKind:
    if code in _AUTHENTICATION:
        return KAFKA_AUTHENTICATION
    if code in _AUTHORIZATION:
        return KAFKA_AUTHORIZATION
    return _KINDS.get(code) or (KAFKA_RETRIABLE if code in RETRIABLE else KAFKA)


def from_refusal(refused: Refused) -> RestError:
    return RestError(kind_of(refused.code), refusal_text(refused))


def refusal_text(refused: Refused) -> str:
    """The message of a refusal. A response without a message leaves the text to the client, so Kafka's default is
    used."""
    if refused.message and refused.message != refused.code.name:
        return refused.message
    return DEFAULT_MESSAGES.get(refused.code, refused.code.name)


def from_kafka_error(error: "KafkaError") -> RestError:
    kind, message = classify(error)
    return RestError(kind, message)


def classify(error: "KafkaError") -> tuple[ErrorKind, str]:
    """The kind and message of an error that librdkafka reports, which is its own or a broker's."""
    from confluent_kafka import KafkaError as Kafka

    number = error.code()
    if number > 0:
        try:
            code = ErrorCode(number)
        except ValueError:
            return KAFKA, error.str()
        return kind_of(code), DEFAULT_MESSAGES.get(code, error.str())
    match number:
        case Kafka._AUTHENTICATION | Kafka._SSL:
            return KAFKA_AUTHENTICATION, error.str()
        case Kafka._UNKNOWN_TOPIC | Kafka._UNKNOWN_PARTITION:
            return UNKNOWN_TOPIC_OR_PARTITION, DEFAULT_MESSAGES[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        case (
            Kafka._TRANSPORT
            | Kafka._ALL_BROKERS_DOWN
            | Kafka._MSG_TIMED_OUT
            | Kafka._TIMED_OUT
            | Kafka._TIMED_OUT_QUEUE
            | Kafka._QUEUE_FULL
            | Kafka._WAIT_COORD
            | Kafka._RESOLVE
        ):
            return KAFKA_RETRIABLE, error.str()
    return KAFKA, error.str()
