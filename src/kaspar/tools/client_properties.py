"""Properties of a client or a formatter from the command line: `--command-property key=value`, and files."""

from collections.abc import Iterable
from pathlib import Path

from kaspar.base.errors import InvalidSetting
from kaspar.tools.command_line import CommandFailed


def key_values(words: Iterable[str]) -> dict[str, str]:
    """Of `key=value` words; a key alone has an empty value."""
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def load_properties(file: str | None) -> dict[str, str]:
    """Raises CommandFailed with a sentence."""
    if file is None:
        return {}
    from kaspar.config import load_settings  # most commands run without a file

    try:
        return load_settings(Path(file))
    except InvalidSetting as problem:
        raise CommandFailed(str(problem)) from None


def are_addresses(servers: str) -> bool:
    """Whether this is host:port, or several of them with commas between."""
    for address in servers.split(","):
        host, colon, port = address.strip().rpartition(":")
        if not (host and colon and port.isdecimal()):
            return False
    return True
