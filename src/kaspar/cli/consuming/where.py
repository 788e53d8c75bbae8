"""`--where`: a Python expression that selects the records to print.

It is compiled once, and runs with the user's rights, like any Python program: untrusted expressions must not be passed
to it.
"""

import ast
import builtins
import datetime
import difflib
import json
import math
import re
from types import CodeType, ModuleType
from typing import Any, Final

from kaspar.cli.records.record import ReadRecord
from kaspar.cli.records.types import CannotRead

NAMES: Final = ("key", "value", "headers", "timestamp", "partition", "offset", "topic")
_MODULES: Final[dict[str, ModuleType]] = {"datetime": datetime, "json": json, "math": math, "re": re}


class Where:
    """Decides whether a record is printed. A record for which the expression fails, for instance because a field is
    missing, is skipped. The number of failures and the first one are reported at the end."""

    def __init__(self, code: CodeType) -> None:
        self._code = code
        self.failures = 0
        self.first_failure: str | None = None

    def matches(self, record: ReadRecord) -> bool:
        raw = record.raw
        try:
            names: dict[str, Any] = {
                **_MODULES,
                "key": record.key,
                "value": record.value,
                "headers": record.headers,
                "timestamp": raw.timestamp_ms,
                "partition": raw.partition,
                "offset": raw.offset,
                "topic": raw.topic,
            }
            # One dict is used for globals and locals, so that comprehensions can access the names.
            return bool(eval(self._code, names))
        except CannotRead:
            raise
        except Exception as problem:  # the user's expression may raise anything
            self.failures += 1
            if self.first_failure is None:
                self.first_failure = f"{raw}: {type(problem).__name__}: {problem}"
            return False


def compile_where(text: str) -> Where:
    """Compile an expression. Raises ValueError with a message for users if it is not an expression, or uses names that
    records do not have.
    """
    try:
        tree = ast.parse(text.strip(), filename="--where", mode="eval")
        code = compile(tree, "--where", "eval")
    except (SyntaxError, ValueError) as problem:
        reason = problem.msg if isinstance(problem, SyntaxError) else str(problem)
        raise ValueError(f"'{text}' is not a Python expression: {reason}") from None
    _check_names(tree)
    return Where(code)


def _check_names(tree: ast.Expression) -> None:
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    known = {*NAMES, *_MODULES, *bound}
    for node in names:
        if node.id not in known and not hasattr(builtins, node.id):
            near = difflib.get_close_matches(node.id, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"valid names: {', '.join(NAMES)}"
            raise ValueError(f"a record has no '{node.id}': {hint}")
