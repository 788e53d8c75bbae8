"""What `--alter` sets and deletes: `--add-config`, `--add-config-file` and `--delete-config`."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kaspar.tools.command_line import CommandFailed, read_file

_OUTSIDE_BRACKETS: Final = r"(?=[^\]]*(?:\[|$))"
_COMMA: Final = re.compile("," + _OUTSIDE_BRACKETS)
_EQUALS: Final = re.compile(r"\s*=\s*" + _OUTSIDE_BRACKETS)
_NAME: Final = re.compile(r"[$a-zA-Z0-9._-]*")


def parse_added(text: str) -> dict[str, str]:
    """Parse `k1=v1,k2=[v1,v2],k3=v3`, where values that contain commas are in brackets. Raises CommandFailed."""
    words = _COMMA.split(text)
    while len(words) > 1 and not words[-1]:
        words.pop()
    pairs = [_EQUALS.split(word) for word in words]
    if any(len(pair) != 2 for pair in pairs):
        raise CommandFailed(
            "requirement failed: Invalid entity config: all configs to be added must be in the format "
            '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
        )
    return _checked({name.strip(): re.sub(r"[\[\]]", "", value).strip() for name, value in pairs})


def read_added(path: str) -> dict[str, str]:
    """Read a properties file. Raises CommandFailed."""
    from kaspar.config.properties import read_properties  # imported here because most calls have no file

    return _checked(read_properties(read_file(path)))


def parse_deleted(lists: Sequence[str]) -> list[str]:
    """Parse lists such as `k1,k2`, one for each time that the option is given."""
    return [name.strip() for names in lists for name in names.split(",")]


def _checked(added: Mapping[str, str]) -> dict[str, str]:
    for name in added:
        if _NAME.fullmatch(name) is None:
            raise CommandFailed(f"Invalid character found for config key: {name}")
    return dict(added)
