"""Executes programs as `__main__`, each in a thread of one process.

sys.argv, sys.path and `__main__` belong to the process. A program therefore has exclusive use of them, for a turn that
lasts until it calls run() with its pipeline; the next program waits for that. Functions of `__main__` are pickled by
value: workers need not find the program.
"""

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.pipelines.modules import MAIN, ModulesBeside

LONGEST_TURN_S: Final = 60.0
_LOOK_EVERY_S: Final = 0.1


def check_program(program: Path) -> None:
    """Raises KasparError if the program cannot be read or compiled."""
    _compiled(program)


def _compiled(program: Path) -> CodeType:
    try:
        return compile(program.read_bytes(), str(program), "exec", dont_inherit=True)
    except OSError as problem:
        raise KasparError(f"the program {program} cannot be read: {problem.strerror}") from None
    except (SyntaxError, ValueError) as problem:
        line = f", line {problem.lineno}" if isinstance(problem, SyntaxError) else ""
        what = problem.msg if isinstance(problem, SyntaxError) else problem
        raise KasparError(f"the program {program} is not valid Python{line}: {what}") from None


class Loader:
    """Executes programs, one turn at a time."""

    def __init__(self, modules: ModulesBeside, *, longest_turn_s: float = LONGEST_TURN_S) -> None:
        self._modules = modules
        self._longest_turn_s = longest_turn_s
        self._turn = threading.Lock()
        self._owner: int | None = None
        """The id of the thread that has the turn."""
        self._program = Path()
        self._own_argv = sys.argv
        self._own_main = sys.modules[MAIN]

    def execute(self, program: Path, arguments: Sequence[str], stop: threading.Event) -> None:
        """Run a program in this thread. Returns without running it if `stop` is set while it waits for its turn. Raises
        what the program raises."""
        code = _compiled(program)
        if not self._wait_for_turn(stop):
            return
        self._owner, self._program = threading.get_ident(), program
        try:
            self._modules.check(program.parent)
            main = ModuleType(MAIN)
            vars(main).update(__file__=str(program), __builtins__=__builtins__)
            sys.modules[MAIN] = main
            sys.argv = [str(program), *arguments]
            sys.path.insert(0, str(program.parent))
            exec(code, vars(main))
        finally:
            self.end_turn()

    def end_turn(self) -> None:
        """End the turn of the calling thread, if it has one."""
        if self._owner != threading.get_ident():
            return
        try:
            folder = str(self._program.parent)
            if folder in sys.path:  # moved to the end, for later imports of the program
                sys.path.remove(folder)
            sys.path.append(folder)
            sys.argv, sys.modules[MAIN] = self._own_argv, self._own_main
            self._modules.publish(self._program.parent)
        finally:
            self._owner = None
            self._turn.release()

    def _wait_for_turn(self, stop: threading.Event) -> bool:
        until = time.monotonic() + self._longest_turn_s
        while not self._turn.acquire(timeout=_LOOK_EVERY_S):
            if stop.is_set():
                return False
            if time.monotonic() > until:
                raise KasparError(
                    f"the program {self._program} has not called run() within {self._longest_turn_s:.0f} s: programs "
                    "start one at a time, and this one is waiting for it"
                )
        return True
