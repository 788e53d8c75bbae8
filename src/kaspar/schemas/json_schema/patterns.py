"""Regular expressions of schemas. Schemas are untrusted, so matching is bounded, whatever the pattern and the text.

RE2 matches in time proportional to the text. It has no lookaround and no back references, which Confluent's registry
accepts; these patterns are matched by an engine that gives up after a number of steps. Python's own engine is never
used for a pattern of a schema.
"""

import functools
import re
from collections.abc import Callable
from typing import Final

import re2

from kaspar.schemas.json_schema.backtracking import UncheckablePattern, compiled

__all__ = ["UncheckablePattern", "backtracks", "matches", "problem_with"]

MAX_CHARACTERS: Final = 10_000
_KNOWN_PATTERNS: Final = 1024

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 4 << 20
_OPTIONS.never_capture = True

# JSON Schema has ECMAScript's patterns, in which a code point is written in another way than in RE2's.
_CODE_POINT: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
# RE2's maximum for a repetition. A higher one is split into several repetitions.
_MAX_REPETITION: Final = 1000
_REPETITION: Final = re.compile(
    r"(?P<atom>\\x\{[0-9a-fA-F]+\}|\\[pP](?:\{[^}]*\}|.)|\\.|\[(?:\\.|[^\]\\])+\]|[^\\()\[\]{}*+?|^$])"
    r"\{(?P<least>[0-9]{1,5})(?P<range>,(?P<most>[0-9]{1,5})?)?\}",
    re.DOTALL,
)
# RE2's messages about patterns that are invalid in any syntax. Its other messages may be about its own limits.
_BROKEN: Final = re.compile("missing [])]|unexpected [)]|trailing \\\\|no argument for repetition operator")


def problem_with(pattern: str) -> str | None:
    """Why the pattern is invalid, or None."""
    if len(pattern) > MAX_CHARACTERS:
        return f"the pattern has {len(pattern)} characters, {MAX_CHARACTERS} are allowed"
    outcome = _compiled(pattern)
    if isinstance(outcome, str) and _BROKEN.search(outcome):
        return f"{pattern[:100]!r} is not a regular expression: {outcome}"
    return None


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text. Raises UncheckablePattern."""
    outcome = _compiled(pattern)
    if isinstance(outcome, str):
        raise UncheckablePattern(f"The pattern {pattern[:100]!r} cannot be matched: {outcome}")
    return outcome(text)


@functools.lru_cache(_KNOWN_PATTERNS)
def backtracks(pattern: str) -> bool:
    """Whether matching may take longer than in proportion to the text."""
    return isinstance(_in_proportion(pattern), str)


@functools.lru_cache(_KNOWN_PATTERNS)
def _compiled(pattern: str) -> Callable[[str], bool] | str:
    """A function that searches, or RE2's reason to refuse the pattern if backtracking cannot match it either."""
    outcome = _in_proportion(pattern)
    if isinstance(outcome, str):
        try:
            return compiled(pattern, _character)
        except UncheckablePattern:
            return outcome
    return outcome


def _in_proportion(pattern: str) -> Callable[[str], bool] | str:
    """A function that searches in time proportional to the text, or RE2's reason to refuse the pattern."""
    pattern = _CODE_POINT.sub(_in_re2, pattern)
    outcome = _by_re2(pattern)
    if isinstance(outcome, str) and outcome.startswith("invalid repetition size"):
        pattern = _REPETITION.sub(_repeated, pattern)
        return _by_re2(pattern) if len(pattern) <= MAX_CHARACTERS else outcome
    return outcome


def _by_re2(pattern: str) -> Callable[[str], bool] | str:
    try:
        search = re2.compile(pattern, _OPTIONS).search
    except re2.error as error:
        (sentence,) = error.args
        sentence = sentence.decode(errors="replace") if isinstance(sentence, bytes) else str(sentence)
        return str(sentence[:100])
    return lambda text: search(text) is not None


def _character(atom: str) -> Callable[[str], bool]:
    search = _in_proportion(f"^(?:{atom})$")
    if isinstance(search, str):
        raise UncheckablePattern(search)
    return functools.lru_cache(256)(search)


def _in_re2(escape: re.Match[str]) -> str:
    code_point = escape[1] or escape[2]
    return f"\\x{{{code_point}}}" if code_point else escape[0]


def _repeated(repetition: re.Match[str]) -> str:
    atom, least = repetition["atom"], int(repetition["least"])
    most = int(repetition["most"]) if repetition["most"] else None if repetition["range"] else least
    if max(least, most or 0) <= _MAX_REPETITION or (most is not None and most < least):
        return repetition[0]
    times, rest = divmod(least, _MAX_REPETITION)
    parts = [f"{atom}{{{_MAX_REPETITION}}}"] * times + [f"{atom}{{{rest}}}"]
    if most is None:
        return "".join((*parts, f"{atom}*"))
    times, rest = divmod(most - least, _MAX_REPETITION)
    return "".join((*parts, *[f"{atom}{{0,{_MAX_REPETITION}}}"] * times, f"{atom}{{0,{rest}}}"))
