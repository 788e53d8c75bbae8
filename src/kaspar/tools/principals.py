"""Principals in command options: a type and a name, such as User:alice."""

from kaspar.acls.principal import Principal
from kaspar.tools.command_line import CommandFailed


def parse_principal(text: str) -> Principal:
    """Raises CommandFailed."""
    kind, colon, name = text.strip().partition(":")
    if not colon:
        raise CommandFailed(f"expected a string in format principalType:principalName but got {text.strip()}")
    return Principal(kind, name)
