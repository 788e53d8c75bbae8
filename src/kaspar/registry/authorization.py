"""Permissions, from a file in the format of Karapace's `registry_authfile`.

    {"permissions": [{"username": "admin", "operation": "Write", "resource": ".*"},
                     {"username": "reader", "operation": "Read", "resource": "Subject:orders-.*"}]}

A resource is a regular expression that must match the beginning of `Subject:NAME` or of `Config:`, which stands for the
config and mode of the whole registry. Write includes Read. The users in the same file are read by the server, which
authenticates them. Without a file everything is allowed.
"""

import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Protocol

import msgspec

from kaspar.base.errors import InvalidSetting


class Operation(Enum):
    READ = "Read"
    WRITE = "Write"


class Permission(msgspec.Struct, frozen=True):
    username: str
    operation: Operation
    resource: str


class _File(msgspec.Struct, frozen=True):
    permissions: tuple[Permission, ...]


class Authorizer(Protocol):
    def allows(self, user: str | None, operation: Operation, resource: str) -> bool: ...


class Permissions:
    """The permissions of a file."""

    def __init__(self, permissions: Iterable[Permission]) -> None:
        self._by_user: dict[str, list[tuple[Operation, re.Pattern[str]]]] = {}
        for permission in permissions:
            entry = (permission.operation, re.compile(permission.resource))
            self._by_user.setdefault(permission.username, []).append(entry)

    def allows(self, user: str | None, operation: Operation, resource: str) -> bool:
        return user is not None and any(
            (operation is Operation.READ or allowed is Operation.WRITE) and pattern.match(resource) is not None
            for allowed, pattern in self._by_user.get(user, ())
        )


class PermissionsFile:
    """Reloaded when the file changes. If the new content is invalid, the last valid permissions stay in force."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._permissions = Permissions(())

    def files(self) -> Iterable[Path]:
        return (self._path,)

    def load(self) -> None:
        """Raises InvalidSetting."""
        try:
            content = msgspec.json.decode(self._path.read_bytes(), type=_File)
            self._permissions = Permissions(content.permissions)
        except OSError as problem:
            raise InvalidSetting(f"the permissions file {self._path} cannot be read: {problem.strerror}") from None
        except (msgspec.MsgspecError, re.error) as problem:
            raise InvalidSetting(f"the permissions file {self._path} is not valid: {problem}") from None

    def allows(self, user: str | None, operation: Operation, resource: str) -> bool:
        return self._permissions.allows(user, operation, resource)


def subject_resource(subject: str) -> str:
    return f"Subject:{subject}"


CONFIG_RESOURCE = "Config:"
