"""Matches patterns with lookaround and back references, which RE2 does not have, by backtracking within a step limit.

The syntax is ECMAScript's without flags. Single characters (an escape, a class, a dot) are tested by a function that
the caller passes. Everything else becomes a matcher: a function that tries to match at a position, and calls a
continuation with the position after the match, until one continuation succeeds.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kaspar.base.errors import KasparError

MAX_STEPS: Final = 100_000

Test = Callable[[str], bool]
"""A test of a single character."""
Then = Callable[[int], bool]
Matcher = Callable[["_Run", int, Then], bool]


class UncheckablePattern(KasparError):
    """The pattern, or this text with it, cannot be matched in bounded time."""


@dataclass(slots=True)
class _Run:
    """One search in one text."""

    text: str
    groups: dict[int, str] = field(default_factory=dict)
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise UncheckablePattern("The pattern takes too many steps on this text")


def compiled(pattern: str, character: Callable[[str], Test]) -> Callable[[str], bool]:
    """A function that searches. `character` makes the test for one escape, class or dot. Raises UncheckablePattern."""
    matcher = _Parser(pattern, character).parse()

    def search(text: str) -> bool:
        run = _Run(text)
        try:
            return any(matcher(run, start, lambda _: True) for start in range(len(text) + 1))
        except RecursionError:
            raise UncheckablePattern("The pattern repeats a group too often on this text") from None

    return search


_QUANTIFIER: Final = re.compile(
    r"(?:(?P<sign>[*+?])|\{(?P<least>[0-9]{1,5})(?P<range>,(?P<most>[0-9]{1,5})?)?\})(?P<lazy>\??)"
)
_ESCAPE: Final = re.compile(r"\\(?:[pP](?:\{[^}]*\}|.)|u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_CLASS: Final = re.compile(r"\[\^?(?:\\.|[^\]\\])+\]", re.DOTALL)
_BACK_REFERENCE: Final = re.compile(r"\\(?:(?P<number>[1-9][0-9]?)|k<(?P<name>\w+)>)")
_GROUP: Final = re.compile(r"\((?:\?(?P<kind>:|=|!|<=|<!|<(?P<name>[A-Za-z_]\w*)>))?")


class _Parser:
    def __init__(self, pattern: str, character: Callable[[str], Test]) -> None:
        self._pattern: Final = pattern
        self._character: Final = character
        self._at = 0
        self._groups = 0
        self._names: dict[str, int] = {}

    def parse(self) -> Matcher:
        try:
            matcher = self._alternatives()
        except RecursionError:
            raise UncheckablePattern("The pattern is nested too deeply") from None
        if self._at < len(self._pattern):
            raise UncheckablePattern(f"unexpected {self._pattern[self._at]!r}")
        return matcher

    def _alternatives(self) -> Matcher:
        options = [self._sequence()]
        while self._takes("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else _any_of(options)

    def _sequence(self) -> Matcher:
        items = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            items.append(self._quantified())
        return _one_after_another(items)

    def _quantified(self) -> Matcher:
        test = self._test()
        atom = _one(test) if test is not None else self._atom()
        found = self._match(_QUANTIFIER)
        if found is None:
            return atom
        least, most = _bounds(found)
        greedy = not found["lazy"]
        return _repeated_one(test, least, most, greedy) if test is not None else _repeated(atom, least, most, greedy)

    def _test(self) -> Test | None:
        """The test for the next character or class of the pattern; None if something else follows."""
        if found := self._match(_CLASS):
            return self._character(found[0])
        following = self._pattern[self._at]
        if following == "\\" and self._pattern[self._at + 1 : self._at + 2] not in ("b", "B", "k", *"123456789"):
            found = self._match(_ESCAPE)
            if found is None:
                raise UncheckablePattern("trailing \\")
            return self._character(found[0])
        if following in "\\([*+?^$":
            return None
        self._at += 1
        return self._character(".") if following == "." else following.__eq__

    def _atom(self) -> Matcher:
        if self._takes("^"):
            return _where(lambda text, i: i == 0)
        if self._takes("$"):
            return _where(lambda text, i: i == len(text))
        if self._takes("\\b"):
            return _where(_is_boundary)
        if self._takes("\\B"):
            return _where(lambda text, i: not _is_boundary(text, i))
        if found := self._match(_BACK_REFERENCE):
            return self._back_reference(found)
        if found := self._match(_GROUP):
            return self._group(found)
        raise UncheckablePattern(f"unexpected {self._pattern[self._at]!r}")

    def _group(self, opening: re.Match[str]) -> Matcher:
        kind = opening["kind"]
        number = 0
        if kind is None or opening["name"]:
            self._groups += 1
            number = self._groups
            self._names.update({opening["name"]: number} if opening["name"] else {})
        inner = self._alternatives()
        if not self._takes(")"):
            raise UncheckablePattern("missing )")
        if number:
            return _capturing(inner, number)
        match kind:
            case "=" | "!":
                return _ahead(inner, wanted=kind == "=")
            case "<=" | "<!":
                return _behind(inner, wanted=kind == "<=")
            case _:
                return inner

    def _back_reference(self, found: re.Match[str]) -> Matcher:
        names, name = self._names, found["name"]
        number = int(found["number"]) if found["number"] else 0

        def matcher(run: _Run, i: int, then: Then) -> bool:
            captured = run.groups.get(names.get(name, 0) if name else number, "")
            return run.text.startswith(captured, i) and then(i + len(captured))

        return matcher

    def _takes(self, text: str) -> bool:
        taken = self._pattern.startswith(text, self._at)
        self._at += len(text) if taken else 0
        return taken

    def _match(self, token: re.Pattern[str]) -> re.Match[str] | None:
        found = token.match(self._pattern, self._at)
        if found is not None:
            self._at = found.end()
        return found


def _bounds(quantifier: re.Match[str]) -> tuple[int, int | None]:
    match quantifier["sign"]:
        case "*":
            return 0, None
        case "+":
            return 1, None
        case "?":
            return 0, 1
        case _:
            least = int(quantifier["least"])
            return least, int(quantifier["most"]) if quantifier["most"] else None if quantifier["range"] else least


def _one(test: Test) -> Matcher:
    def matcher(run: _Run, i: int, then: Then) -> bool:
        run.step()
        return i < len(run.text) and test(run.text[i]) and then(i + 1)

    return matcher


def _where(condition: Callable[[str, int], bool]) -> Matcher:
    return lambda run, i, then: condition(run.text, i) and then(i)


def _is_boundary(text: str, i: int) -> bool:
    return _is_word(text[i - 1 : i]) != _is_word(text[i : i + 1])


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def _any_of(options: Sequence[Matcher]) -> Matcher:
    return lambda run, i, then: any(option(run, i, then) for option in options)


def _one_after_another(items: Sequence[Matcher]) -> Matcher:
    if len(items) == 1:
        return items[0]

    def from_item(n: int, run: _Run, i: int, then: Then) -> bool:
        return then(i) if n == len(items) else items[n](run, i, lambda j: from_item(n + 1, run, j, then))

    return lambda run, i, then: from_item(0, run, i, then)


def _repeated_one(test: Test, least: int, most: int | None, greedy: bool) -> Matcher:
    """Match a repeated single character, without recursion, because patterns repeat these most often."""

    def matcher(run: _Run, i: int, then: Then) -> bool:
        end = i
        limit = len(run.text) if most is None else min(len(run.text), i + most)
        while end < limit and test(run.text[end]):
            run.step()
            end += 1
        ends = range(i + least, end + 1)
        return any(then(j) for j in (reversed(ends) if greedy else ends))

    return matcher


def _repeated(inner: Matcher, least: int, most: int | None, greedy: bool) -> Matcher:
    def after(count: int, run: _Run, i: int, then: Then) -> bool:
        run.step()

        def more() -> bool:
            # A repetition that matches nothing would never end.
            return (most is None or count < most) and inner(
                run, i, lambda j: (j > i or count < least) and after(count + 1, run, j, then)
            )

        if count < least:
            return more()
        return (more() or then(i)) if greedy else (then(i) or more())

    return lambda run, i, then: after(0, run, i, then)


def _capturing(inner: Matcher, number: int) -> Matcher:
    def matcher(run: _Run, i: int, then: Then) -> bool:
        def captured(j: int) -> bool:
            before = run.groups.get(number)
            run.groups[number] = run.text[i:j]
            if then(j):
                return True
            del run.groups[number]
            if before is not None:
                run.groups[number] = before
            return False

        return inner(run, i, captured)

    return matcher


def _ahead(inner: Matcher, *, wanted: bool) -> Matcher:
    return lambda run, i, then: inner(run, i, lambda _: True) is wanted and then(i)


def _behind(inner: Matcher, *, wanted: bool) -> Matcher:
    def ends_here(run: _Run, i: int) -> bool:
        return any(inner(run, start, lambda end: end == i) for start in range(i, -1, -1))

    return lambda run, i, then: ends_here(run, i) is wanted and then(i)
