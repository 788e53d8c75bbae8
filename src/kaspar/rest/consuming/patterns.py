"""Patterns of topic names. RE2 takes time linear in the text, whatever the pattern. Unlike Java's patterns it has no
back references and no look-around.
"""

from collections.abc import Iterable
from typing import Any, Final

import re2

from kaspar.rest.errors import UNPROCESSABLE, RestError

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False


class TopicPattern:
    def __init__(self, text: str) -> None:
        """Raises RestError."""
        try:
            self._pattern: Any = re2.compile(text, _OPTIONS)
        except re2.error as error:
            (reason,) = error.args
            words = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise RestError(UNPROCESSABLE, f"topic_pattern is not a valid regular expression: {words}") from None

    def matching(self, names: Iterable[str]) -> list[str]:
        """The names that the whole pattern matches, as in a Java consumer."""
        return [name for name in names if self._pattern.fullmatch(name) is not None]
