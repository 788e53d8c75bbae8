"""Prints why a load ended, with the messages of Kafka's clients."""

import sys

from kaspar.base.errors import ErrorCode, KasparError, Refused


def report(problem: KasparError, *, topics: str, group: str | None = None) -> None:
    sys.stdout.flush()
    print(_sentence(problem, topics, group), file=sys.stderr)


def _sentence(problem: KasparError, topics: str, group: str | None) -> str:
    if not isinstance(problem, Refused):
        return str(problem)
    match problem.code:
        case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return f"Not authorized to access topics: [{topics}]"
        case ErrorCode.GROUP_AUTHORIZATION_FAILED if group is not None:
            return f"Not authorized to access group: {group}"
    return problem.message
