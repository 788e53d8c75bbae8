# The part of kazoo.handlers.utils that Kaspar uses.

from collections.abc import Callable
from typing import Any

class AsyncResult:
    value: Any
    @property
    def exception(self) -> Exception | None: ...
    def successful(self) -> bool: ...
    def rawlink(self, callback: Callable[[AsyncResult], None]) -> None: ...
