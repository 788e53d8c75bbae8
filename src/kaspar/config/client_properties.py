"""Values in the properties of a client, which a service passes on with the names of Java's clients."""

from collections.abc import Mapping

from kaspar.base.errors import InvalidSetting
from kaspar.config.kinds import LONG


def milliseconds(properties: Mapping[str, str], name: str, default: int) -> int:
    """Read a time that is not negative. Raises InvalidSetting."""
    text = properties.get(name, str(default)).strip()
    try:
        value = LONG.parse(text)
    except ValueError as problem:
        raise InvalidSetting(f"Invalid value {text} for configuration {name}: {problem}") from None
    if value < 0:
        raise InvalidSetting(f"Invalid value {text} for configuration {name}: Value must be at least 0")
    return value
