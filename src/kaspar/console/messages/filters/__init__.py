"""The language of filters over records: `value.amount > 100 and key startswith "eu-"`.

It has its own tokens, grammar and interpreter, because Python's cannot be sandboxed. The language has no loops, no
definitions and no side effects. The cost of a filter is bounded by the length of its text, its depth, and its steps per
record. docs/console-filters.md is its reference.
"""

from kaspar.console.messages.filters.errors import FilterError
from kaspar.console.messages.filters.evaluating import Fields
from kaspar.console.messages.filters.filter import Filter

__all__ = ["Fields", "Filter", "FilterError"]
