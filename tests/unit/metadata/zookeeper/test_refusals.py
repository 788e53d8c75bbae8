"""Which operation of a transaction was refused, and why."""

import pytest
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
    Delete,
    Operation,
    Put,
    StoreError,
    StoreFull,
    VersionConflict,
)
from kaspar.metadata.zookeeper.refusals import refusal, refusal_in


@pytest.mark.parametrize(
    ("operation", "error", "sentence"),
    [
        (Create("/a/b"), NoNodeError(), "/a is not there, so it can have no children"),
        (Create("/a/b"), NoChildrenForEphemeralsError(), "/a is ephemeral, so it can have no children"),
        (Create("/a/b"), NodeExistsError(), "/a/b is already there"),
        (Put("/a", b""), NoNodeError(), "/a is not there"),
        (Put("/a", b"", 3), BadVersionError(), "/a is not of version 3"),
        (Check("/a", 4), BadVersionError(), "/a is not of version 4"),
        (Delete("/a"), NotEmptyError(), "/a has children"),
    ],
    ids=repr,
)
def test_conflicts_name_the_node(operation: Operation, error: Exception, sentence: str) -> None:
    found = refusal(operation, error)
    assert isinstance(found, VersionConflict)
    assert str(found) == sentence


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (QuotaExceededError(), StoreFull, "/a cannot be changed: ZooKeeper's quota on it is used up"),
        (NoAuthError(), AccessDenied, "/a cannot be changed: its ACL in ZooKeeper does not allow it"),
        (InvalidACLError(), AccessDenied, "/a cannot be changed: .* ZooKeeper does not know who this broker is"),
        (BadArgumentsError(), StoreError, r"/a cannot be changed: ZooKeeper refuses it \(BadArgumentsError\)"),
    ],
    ids=repr,
)
def test_what_an_operator_has_to_mend_is_no_conflict(error: Exception, kind: type[StoreError], sentence: str) -> None:
    with pytest.raises(kind, match=sentence) as raised:
        raise refusal(Put("/a", b""), error)
    assert not isinstance(raised.value, VersionConflict)


def test_reason_is_the_error_of_the_refused_operation_not_of_its_neighbours() -> None:
    operations: list[Operation] = [Create("/a"), Check("/b", 1), Put("/c", b"")]
    found = refusal_in(operations, [RolledBackError(), BadVersionError(), RuntimeInconsistency()])
    assert isinstance(found, VersionConflict)
    assert found.path == "/b"
    assert refusal_in(operations, ["/a", True, object()]) is None
