"""Errors as Kafka's commands print them: the name of the Java exception, then the message.

Scripts look for these names, so they are part of a command's output. The names are derived from those of the error
codes, with few exceptions. If a response has no message, the client's default message is used.
"""

import sys
from typing import Final

from kaspar.base.errors import ErrorCode, KasparError, Refused

_PACKAGE: Final = "org.apache.kafka.common.errors"
_OTHER_PACKAGES: Final = {ErrorCode.INVALID_RECORD: "org.apache.kafka.common"}

_IRREGULAR: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    ErrorCode.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    ErrorCode.NETWORK_EXCEPTION: "NetworkException",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
}


def report(problem: KasparError) -> None:
    """Print the problem on standard error, as most commands do when they fail."""
    print(exception_text(problem), file=sys.stderr)


def exception_text(problem: KasparError) -> str:
    """A refusal in the format of Kafka's exceptions. Other problems are already sentences."""
    if not isinstance(problem, Refused):
        return str(problem)
    return f"{exception_name(problem.code)}: {message_of(problem)}"


def message_of(problem: KasparError) -> str:
    """The text without the name of the exception."""
    if not isinstance(problem, Refused):
        return str(problem)
    if problem.message == problem.code.name:  # the response had no message
        from kaspar.tools.error_messages import DEFAULT_MESSAGES  # a long table, which few commands need

        return DEFAULT_MESSAGES[problem.code]
    return problem.message


def exception_name(code: ErrorCode) -> str:
    """The name of the exception, with its package."""
    regular = "".join(word.capitalize() for word in code.name.split("_")) + "Exception"
    return f"{_OTHER_PACKAGES.get(code, _PACKAGE)}.{_IRREGULAR.get(code, regular)}"
