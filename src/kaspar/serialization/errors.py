"""Errors of serialization and of the registry's client."""

from kaspar.base.errors import KasparError


class SerializationError(KasparError):
    """A value or its bytes do not fit the schema."""


class InvalidValue(SerializationError):
    """A JSON value that does not fit the schema. `path` says where: field names and indexes, from the outside in."""

    def __init__(self, reason: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{path_text(path)}: {reason}" if path else reason)
        self.reason = reason
        self.path = path


class UnreadableBytes(SerializationError):
    """Bytes that were not written with the schema, or not by a serializer of a registry at all."""


class TooCostly(Exception):
    """Encoding the value here would take too long. A process has to do it (value_processes.py)."""


class RegistryError(KasparError):
    """The registry refused a request, or sent an invalid response. `status` and `error_code` are Confluent's."""

    def __init__(self, message: str, *, status: int, error_code: int) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code

    def __reduce__(self) -> tuple[object, ...]:
        return _registry_error, (type(self), str(self), self.status, self.error_code)


class RegistryUnavailable(RegistryError):
    """No registry responded in time."""

    def __init__(self, message: str, *, status: int = 503, error_code: int = 50301) -> None:
        super().__init__(message, status=status, error_code=error_code)


def _registry_error(kind: type[RegistryError], message: str, status: int, error_code: int) -> RegistryError:
    return kind(message, status=status, error_code=error_code)


def path_text(path: tuple[str | int, ...]) -> str:
    """The path as in JavaScript: `orders[3].customer`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def reason_of(error: BaseException) -> str:
    """The text of another library's error, for use in a sentence."""
    return str(error).strip().rstrip(".") or type(error).__name__
