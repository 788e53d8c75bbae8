# The part of Cython's pure Python mode that the compiled core uses, as mypy should see it: C integers are ints,
# and decorators that only speak to the compiler change nothing.

import builtins
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias, TypeVar, overload

_T = TypeVar("_T")

compiled: bool

bint: TypeAlias = bool
uchar: TypeAlias = builtins.int
int: TypeAlias = builtins.int
uint: TypeAlias = builtins.int
longlong: TypeAlias = builtins.int
ulonglong: TypeAlias = builtins.int
Py_ssize_t: TypeAlias = builtins.int
void: TypeAlias = None

const: Any  # only evaluated, as in const[uchar][::1]

@overload
def declare(kind: type[_T], value: _T = ..., /, *, visibility: str = ...) -> _T: ...
@overload
def declare(kind: object, value: Any = ..., /, *, visibility: str = ...) -> Any: ...
def cclass(target: _T, /) -> _T: ...
def cfunc(target: _T, /) -> _T: ...
def ccall(target: _T, /) -> _T: ...
def final(target: _T, /) -> _T: ...
def inline(target: _T, /) -> _T: ...
def exceptval(value: Any = ..., *, check: bool = ...) -> Callable[[_T], _T]: ...
def locals(**kinds: object) -> Callable[[_T], _T]: ...

class _NoGil(AbstractContextManager[None]):
    def __call__(self, target: _T, /) -> _T: ...
    def __exit__(self, *exception: object) -> None: ...

nogil: _NoGil
