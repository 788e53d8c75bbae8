"""What the source may assert. `python -O` removes assertions with all that they do, and Python cannot forbid that."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kaspar
from kaspar.base.errors import invariant

SOURCE = Path(kaspar.__file__).parent
ASSERTIONS = [
    (path.relative_to(SOURCE), node)
    for path in sorted(SOURCE.rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.Assert)
]

WITHOUT_SIDE_EFFECTS = {"isinstance", "issubclass", "len", "endswith", "startswith"}
"""Calls that assertions may contain: none of them changes anything."""

OUTSIDE_A_BROKER = {"base", "config", "records", "protocol", "client", "spark", "testing", "tools", "cli"}
"""Packages that also run in processes which we do not start."""

MAY_BE_REMOVED = {"records/core/column_filling.py", "protocol/error_counts.py"}
"""These find a mistake in our own code when its tests run; no data rests on them."""


def where(path: Path, node: ast.Assert) -> str:
    return f"{path}:{node.lineno}: assert {ast.unparse(node.test)}"


def called(test: ast.expr) -> Iterator[str]:
    for node in ast.walk(test):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)


def narrows_a_type(test: ast.expr) -> bool:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return narrows_a_type(operand)
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass")):
            return True
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def test_no_assertion_does_anything_but_look() -> None:
    assert len(ASSERTIONS) > 50
    guilty = [
        where(path, node)
        for path, node in ASSERTIONS
        if set(called(node.test)) - WITHOUT_SIDE_EFFECTS
        or any(isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for part in ast.walk(node.test))
    ]
    assert not guilty


def test_outside_a_broker_assertions_only_narrow_types() -> None:
    guilty = [
        where(path, node)
        for path, node in ASSERTIONS
        if path.parts[0] in OUTSIDE_A_BROKER and str(path) not in MAY_BE_REMOVED and not narrows_a_type(node.test)
    ]
    assert not guilty


def test_invariant_is_checked_whatever_options_python_has() -> None:
    invariant(True, "fine")
    with pytest.raises(AssertionError, match="not fine"):
        invariant(False, "not fine")


@pytest.mark.parametrize("flag", [["-O"], []], ids=["option", "variable"])
def test_a_broker_refuses_to_run_without_its_assertions(tmp_path: Path, flag: list[str]) -> None:
    environment = os.environ | ({} if flag else {"PYTHONOPTIMIZE": "2"})
    settings = ["--override", f"log.dirs={tmp_path}", "--override", "listeners=PLAINTEXT://127.0.0.1:0"]
    command = [sys.executable, *flag, "-c", "import sys; from kaspar.cli.main import main; sys.exit(main())"]
    ended = subprocess.run(
        [*command, "broker", *settings], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert "PYTHONOPTIMIZE, which removes the assertions" in ended.stderr
    assert not list(tmp_path.iterdir())
