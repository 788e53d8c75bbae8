"""Interprets the tree of a filter for one record, in a bounded number of steps.

A step is a node of the tree, a value that is visited (every value within a list or an object that is compared or
written as text), a header, 4 KiB of text that is searched, or 256 bits of an integer. Steps are spent before the work
is done, so no operation blocks other threads for longer than its steps allow.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, assert_never

from kaspar.console.messages.filters.comparing import (
    Many,
    compare,
    goes_over,
    is_number,
    is_true,
    number_of,
    size_of,
    text_of,
)
from kaspar.console.messages.filters.tree import (
    And,
    Arithmetic,
    Call,
    Compare,
    Comparison,
    Every,
    Field,
    Function,
    Items,
    Literal,
    Matches,
    Negated,
    Node,
    Not,
    Now,
    Operator,
    Or,
    Path,
    TextSearch,
    Value,
)

MAX_STEPS: Final = 10_000
"""The maximum number of steps for one record."""
_TEXT_PER_STEP: Final = 4096
_BITS_PER_STEP: Final = 256
"""Bits of an integer. In arithmetic, one with more becomes a float, so that products do not grow without limit."""

_OPERATIONS: Final[dict[Operator, Callable[[Any, Any], Any]]] = {
    Operator.PLUS: operator.add,
    Operator.MINUS: operator.sub,
    Operator.TIMES: operator.mul,
    Operator.DIVIDED_BY: operator.truediv,
    Operator.MODULO: operator.mod,
}


class Fields(Protocol):
    """The parts of a record that a filter can use. Keys and values are decoded on first use."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...

    def key(self) -> Value:
        """The decoded JSON, or a text; binary keys are hexadecimal text."""

    def value(self) -> Value: ...

    def headers(self) -> Mapping[str, str | None]:
        """The headers by name; the last one of each name."""

    def texts(self) -> Iterable[str]:
        """All texts that a text search looks at."""


class StepLimit(Exception):
    """The record is too large for this filter."""


class Evaluation:
    def __init__(self, fields: Fields, now_ms: int, max_steps: int = MAX_STEPS) -> None:
        self._fields = fields
        self._now_ms = now_ms
        self.steps_left = max_steps

    def holds(self, node: Node) -> bool:
        """Whether the condition holds. Raises StepLimit."""
        return is_true(self._value(node))

    def _spend(self, steps: int) -> None:
        self.steps_left -= steps
        if self.steps_left < 0:
            raise StepLimit

    def _spend_on(self, value: Value) -> None:
        """Spend the steps of an operation that reads all of a value, with everything inside it."""
        unvisited = [value]
        while unvisited:
            each = unvisited.pop()
            if isinstance(each, str):
                self._spend(len(each) // _TEXT_PER_STEP)
            elif isinstance(each, int):
                self._spend(each.bit_length() // _BITS_PER_STEP)
            elif isinstance(each, list | tuple | dict):
                self._spend(len(each))
                unvisited += each.values() if isinstance(each, dict) else each

    def _value(self, node: Node) -> Value:
        self._spend(1)
        match node:
            case Literal(value):
                return value
            case Path(field, steps):
                return self._path(self._field(field), steps)
            case Compare(comparison, left, right):
                return self._compare(comparison, self._value(left), self._value(right))
            case And(conditions):
                return all(self.holds(each) for each in conditions)
            case Or(conditions):
                return any(self.holds(each) for each in conditions)
            case Not(of):
                return not self.holds(of)
            case TextSearch(text):
                return self._search(text)
            case Matches(of, _, compiled):
                return self._matches(compiled, self._value(of))
            case Call(function, argument):
                return self._each(self._value(argument), lambda value: self._call(function, value))
            case Arithmetic(first, rest):
                return self._arithmetic(first, rest)
            case Negated(of):
                return self._each(self._value(of), lambda value: -value if is_number(value) else None)
            case Items(items):
                return [self._value(each) for each in items]
            case Now():
                return self._now_ms
        assert_never(node)

    # --- values -------------------------------------------------------------------------------------------------------

    def _field(self, field: Field) -> Value:
        fields = self._fields
        match field:
            case Field.VALUE:
                return fields.value()
            case Field.KEY:
                return fields.key()
            case Field.HEADERS:
                headers = fields.headers()
                self._spend(len(headers))
                return dict(headers)
            case Field.OFFSET:
                return fields.offset
            case Field.PARTITION:
                return fields.partition
            case Field.TIMESTAMP:
                return fields.timestamp
            case Field.TOPIC:
                return fields.topic
        assert_never(field)

    def _path(self, value: Value, steps: tuple[str | int | Every, ...]) -> Value:
        for step in steps:
            self._spend(1)
            if isinstance(step, Every):
                value = self._every(value)
            elif isinstance(value, Many):
                self._spend(len(value))
                value = Many(_step_into(each, step) for each in value)
            else:
                value = _step_into(value, step)
        return value

    def _every(self, value: Value) -> Many:
        """All elements of a value. With several wildcards, all elements of all elements."""
        found: list[Value] = []
        for each in value if isinstance(value, Many) else (value,):
            elements = list(each.values()) if isinstance(each, dict) else each if isinstance(each, list) else []
            self._spend(len(elements) + 1)
            found += elements
        return Many(found)

    def _each(self, value: Value, function: Callable[[Value], Value]) -> Value:
        if not isinstance(value, Many):
            return function(value)
        self._spend(len(value))
        return Many(function(each) for each in value)

    def _arithmetic(self, first: Node, rest: tuple[tuple[Operator, Node], ...]) -> int | float | None:
        """The result. None if an operand is not a number, the divisor is zero, or the result exceeds a float."""
        total = _single_number(self._value(first))
        for each, node in rest:
            number = _single_number(self._value(node))
            if total is None or number is None:
                return None
            try:
                total = _OPERATIONS[each](_bounded(total), _bounded(number))
            except (ArithmeticError, ValueError):
                return None
        return total

    def _call(self, function: Function, value: Value) -> Value:
        if function is Function.LEN:
            return size_of(value)
        self._spend_on(value)
        match function:
            case Function.LOWER:
                return None if value is None else text_of(value).lower()
            case Function.UPPER:
                return None if value is None else text_of(value).upper()
            case Function.TEXT:
                return None if value is None else text_of(value)
            case Function.NUMBER:
                return number_of(value)
            case Function.ABS:
                return abs(value) if is_number(value) else None
        assert_never(function)

    # --- conditions ---------------------------------------------------------------------------------------------------

    def _compare(self, comparison: Comparison, left: Value, right: Value) -> bool:
        """Whether the comparison holds. With a wildcard it must hold for one of the elements; `!=`, for all of them."""
        if comparison is Comparison.NOT_EQUAL:
            return not self._compare(Comparison.EQUAL, left, right)
        lefts = left if isinstance(left, Many) else (left,)
        if comparison is Comparison.IN and isinstance(right, Many):
            right = list(right)
        rights = right if isinstance(right, Many) else (right,)
        for one in lefts:
            for other in rights:
                self._spend(1)
                for each in goes_over(comparison, one, other):
                    self._spend_on(each)
                if compare(comparison, one, other):
                    return True
        return False

    def _search(self, text: str) -> bool:
        for each in self._fields.texts():
            self._spend(1 + len(each) // _TEXT_PER_STEP)
            if text in each.lower():
                return True
        return False

    def _matches(self, compiled: Any, value: Value) -> bool:
        for each in value if isinstance(value, Many) else (value,):
            if each is None:
                continue
            self._spend(1)
            self._spend_on(each)
            text = text_of(each)
            # RE2 works on UTF-8, which cannot encode the unpaired surrogates that JSON allows.
            if compiled.search(text.encode("utf-8", "replace")) is not None:
                return True
        return False


def _step_into(value: Value, step: str | int) -> Value:
    if isinstance(value, dict):
        return value.get(step) if isinstance(step, str) else None
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        return value[step]
    return None


def _bounded(number: int | float) -> int | float:
    """The number, as a float if it is a long integer. Raises OverflowError."""
    is_long = isinstance(number, int) and number.bit_length() > _BITS_PER_STEP
    return float(number) if is_long else number


def _single_number(value: Value) -> int | float | None:
    if isinstance(value, Many):
        return number_of(value[0]) if len(value) == 1 else None
    return number_of(value)
