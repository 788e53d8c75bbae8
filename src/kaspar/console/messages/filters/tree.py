"""The syntax tree of a filter, which contains everything that a filter can do.

Nodes are frozen values. Chains such as `a and b and c` are one node, so that a tree is no deeper than the parentheses
of its text.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""The value of an expression: None, bool, int, float, str, or the lists and dicts of JSON; `Many` for a wildcard."""


class Field(Enum):
    """The parts of a record that a filter can use."""

    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"


class Comparison(Enum):
    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    IN = "in"
    CONTAINS = "contains"
    STARTS_WITH = "startswith"
    ENDS_WITH = "endswith"


class Function(Enum):
    LEN = "len"
    LOWER = "lower"
    UPPER = "upper"
    NUMBER = "number"
    TEXT = "text"
    ABS = "abs"


class Operator(Enum):
    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    DIVIDED_BY = "/"
    MODULO = "%"


@dataclass(frozen=True, slots=True)
class Literal:
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Now:
    """The time at which the search began."""


@dataclass(frozen=True, slots=True)
class Every:
    """The step `[*]`: all elements of a list, or all values of an object."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path. Its steps are names, indexes (negative ones count from the end) and wildcards."""

    field: Field
    steps: tuple[str | int | Every, ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """A list of values, for `in`."""

    items: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Call:
    function: Function
    argument: "Node"


@dataclass(frozen=True, slots=True)
class Negated:
    """A number with a minus sign."""

    of: "Node"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Operators of the same precedence, applied from left to right."""

    first: "Node"
    rest: "tuple[tuple[Operator, Node], ...]"


@dataclass(frozen=True, slots=True)
class Compare:
    comparison: Comparison
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Matches:
    """A search for an RE2 pattern, which the parser has compiled."""

    of: "Node"
    pattern: str
    compiled: Any


@dataclass(frozen=True, slots=True)
class TextSearch:
    """A text that is a condition by itself: it is searched in the key, the value and the headers, ignoring case."""

    text: str


@dataclass(frozen=True, slots=True)
class Not:
    of: "Node"


@dataclass(frozen=True, slots=True)
class And:
    conditions: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    conditions: "tuple[Node, ...]"


Node: TypeAlias = (
    Literal | Now | Path | Items | Call | Negated | Arithmetic | Compare | Matches | TextSearch | Not | And | Or
)
