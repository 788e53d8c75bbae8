"""Escapes text from a cluster for terminals: names of groups, clients and principals, keys and values of records.

Others choose this text, and control characters in it could rename the window, overwrite lines, or fake other lines.
"""

import re
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Escape control characters, as \\n or \\x1b."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
