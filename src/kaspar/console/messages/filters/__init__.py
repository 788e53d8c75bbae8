"""The language of filters over records: `value.amount > 100 and key startswith "eu-"`.

Its own tokens, grammar and interpreter, since Python's cannot be confined. The language has no loops, no names of its
own and no effects; what a filter may cost is bounded in the length of its text, its depth, and its steps for a record.
docs/console-filters.md is its reference.
"""

from kaspar.console.messages.filters.errors import FilterError
from kaspar.console.messages.filters.evaluating import Fields
from kaspar.console.messages.filters.filter import Filter

__all__ = ["Fields", "Filter", "FilterError"]
