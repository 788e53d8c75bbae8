"""Failures of commands: a message that says what to do next, and an exit code that scripts can rely on.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed, or only partly done; standard error says what |
| 2 | wrong usage: nothing was tried |
| 3 | what was named (topic, group, user, ...) does not exist |
| 4 | not permitted: the log-in failed, or an ACL is missing |
| 5 | no broker responds |
| 130 | interrupted by Ctrl-C |
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, KasparError, Refused

FAILED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
NOT_PERMITTED: Final = 4
NO_BROKER: Final = 5
INTERRUPTED: Final = 130

_NOT_FOUND_CODES: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.RESOURCE_NOT_FOUND,
    }
)
_NOT_PERMITTED_CODES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional id",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "delegation token",
    ErrorCode.SASL_AUTHENTICATION_FAILED: None,
}
_ADVICE: Final = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "'kaspar topic describe' shows it",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first; 'kaspar group describe' shows them",
    ErrorCode.UNSUPPORTED_VERSION: "the broker does not have this feature",
    ErrorCode.SECURITY_DISABLED: "set authorizer.class.name on the brokers, or run 'kaspar up --secure'",
}


class Failure(NamedTuple):
    sentence: str
    exit_code: int


class CommandFailed(KasparError):
    """A command that failed."""

    exit_code = FAILED


class NotFound(CommandFailed):
    exit_code = NOT_FOUND


class WrongUsage(CommandFailed):
    """Options that cannot be combined."""

    exit_code = USAGE


class NoBroker(CommandFailed):
    exit_code = NO_BROKER


def explain(problem: KasparError | OSError | UnicodeError, what: str | None = None) -> Failure:
    """The message and exit code for an error. `what` is the affected resource, such as "topic orders"."""
    if isinstance(problem.__cause__, UnicodeEncodeError):  # a name in a request that cannot be encoded
        problem = problem.__cause__
    match problem:
        case CommandFailed():
            failure = Failure(str(problem), problem.exit_code)
        case Refused():
            failure = _explain_refusal(problem, what)
        case UnicodeEncodeError():
            failure = Failure(f"{problem.object!a} is not UTF-8 text", USAGE)
        case UnicodeError():  # for a name that is impossible in DNS, such as 'a..b'
            failure = Failure(f"invalid host name: {problem}", USAGE)
        case OSError():
            return Failure(_sentence_of(problem), FAILED)
        case _:
            failure = Failure(str(problem), FAILED)
    return failure if what is None else failure._replace(sentence=f"{what}: {failure.sentence}")


def worst(codes: Iterable[int]) -> int:
    """The exit code of a command that made several changes: the code that all failures share, otherwise FAILED."""
    different = set(codes)
    return different.pop() if len(different) == 1 else FAILED if different else 0


def _explain_refusal(refused: Refused, what: str | None) -> Failure:
    if refused.code in _NOT_FOUND_CODES:
        sentence = refused.message if what is None and refused.message != refused.code.name else "does not exist"
        return Failure(sentence, NOT_FOUND)
    if refused.code is ErrorCode.SASL_AUTHENTICATION_FAILED:
        return Failure(f"the broker refused the log-in: {refused.message}", NOT_PERMITTED)
    if refused.code in _NOT_PERMITTED_CODES:
        thing = _NOT_PERMITTED_CODES[refused.code]
        return Failure(f"not permitted: an ACL for the {thing} is missing; 'kaspar acl add' adds it", NOT_PERMITTED)
    sentence = refused.message.rstrip(".") if refused.message != refused.code.name else _readable(refused.code)
    advice = _ADVICE.get(refused.code)
    return Failure(sentence if advice is None else f"{sentence} ({advice})", FAILED)


def _readable(code: ErrorCode) -> str:
    return f"refused: {code.name.lower().replace('_', ' ')}"


def _sentence_of(problem: OSError) -> str:
    reason = problem.strerror or str(problem) or type(problem).__name__
    return f"{problem.filename}: {reason}" if problem.filename is not None else reason
