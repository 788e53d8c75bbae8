"""Whether a pattern is in RE2's syntax. Kafka's command says why not in the words of RE2/J."""

from typing import Final

import re2

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
    """The sentence that the command prints."""
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(regex, options)
    except re2.error as error:
        return f"The regular expression `{regex}` is invalid: {_description(problem_of(error))}."
    return f"The regular expression `{regex}` is valid."


def problem_of(error: re2.error) -> str:
    """RE2's sentence, which the library has as bytes."""
    (sentence,) = error.args
    return sentence.decode(errors="replace") if isinstance(sentence, bytes) else str(sentence)


def _description(problem: str) -> str:
    """RE2's sentence without the text that it is about."""
    kind = problem.partition(": ")[0]
    return _WORDS_OF_RE2J.get(kind, kind)
