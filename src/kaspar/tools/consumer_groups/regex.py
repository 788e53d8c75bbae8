"""Checks whether a pattern is valid in RE2's syntax. Like Kafka's command, reports errors in the words of RE2/J."""

from typing import Final

from kaspar.groups.consumer.patterns import problem_with

_WORDS_OF_RE2J: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


def validate_regex(regex: str) -> str:
    """The line that the command prints."""
    problem = problem_with(regex)
    if problem is None:
        return f"The regular expression `{regex}` is valid."
    kind = problem.partition(": ")[0]  # without the part of the pattern that is invalid
    return f"The regular expression `{regex}` is invalid: {_WORDS_OF_RE2J.get(kind, kind)}."
