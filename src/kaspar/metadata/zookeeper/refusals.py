"""Maps ZooKeeper's errors to those of the store.

An error in a response is definite: nothing was changed. After any other error the outcome is unknown.
"""

from collections.abc import Sequence
from typing import Final

from kazoo.exceptions import (
    BadArgumentsError,
    BadVersionError,
    InvalidACLError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    QuotaExceededError,
    RolledBackError,
    RuntimeInconsistency,
)

from kaspar.metadata.store import (
    AccessDenied,
    Check,
    Create,
    Operation,
    StoreError,
    StoreFull,
    VersionConflict,
    parent_of,
)
from kaspar.security.zookeeper import JAAS_SETTING

DEFINITE: Final = (
    BadArgumentsError,
    BadVersionError,
    InvalidACLError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    QuotaExceededError,
)
"""Definite errors of an operation: it was refused, and nothing was changed."""

_NOT_THE_REASON: Final = (RolledBackError, RuntimeInconsistency)
"""The errors of the other operations in a refused transaction: those before the refused one, and those after it."""


def refusal_in(operations: Sequence[Operation], results: Sequence[object]) -> StoreError | None:
    """The error of a refused transaction. None if it was carried out."""
    errors = [
        (operation, result)
        for operation, result in zip(operations, results, strict=True)
        if isinstance(result, Exception) and not isinstance(result, _NOT_THE_REASON)
    ]
    return refusal(*errors[0]) if errors else None


def refusal(operation: Operation, error: Exception) -> StoreError:
    path = operation.path
    match error:
        case NoNodeError() if isinstance(operation, Create):
            return VersionConflict(parent_of(path), "is not there, so it can have no children")
        case NoNodeError():
            return VersionConflict(path, "is not there")
        case NodeExistsError():
            return VersionConflict(path, "is already there")
        case NotEmptyError():
            return VersionConflict(path, "has children")
        case NoChildrenForEphemeralsError():
            return VersionConflict(parent_of(path), "is ephemeral, so it can have no children")
        case BadVersionError() if not isinstance(operation, Create):
            return VersionConflict(path, f"is not of version {operation.version}")
        case _:
            return other_refusal(path, error, "read" if isinstance(operation, Check) else "changed")


def other_refusal(path: str, error: Exception, done: str = "read") -> StoreError:
    """An error that callers cannot handle; an operator has to solve the problem."""
    match error:
        case QuotaExceededError():
            return StoreFull(f"{path} cannot be {done}: ZooKeeper's quota on it is used up")
        case NoAuthError():
            return AccessDenied(
                f"{path} cannot be {done}: its ACL in ZooKeeper does not allow it to this broker. Its identity must be "
                f"that of the other brokers: check {JAAS_SETTING}, or zookeeper.ssl.keystore.location"
            )
        case InvalidACLError():
            return AccessDenied(
                f"{path} cannot be {done}: zookeeper.set.acl is true, and ZooKeeper does not know who this broker is. "
                f"Check {JAAS_SETTING}, or zookeeper.ssl.keystore.location, and authProvider in ZooKeeper's settings"
            )
        case _:
            return StoreError(f"{path} cannot be {done}: ZooKeeper refuses it ({type(error).__name__})")
