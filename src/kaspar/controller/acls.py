"""Decisions about ACLs. The checks, their order and their messages are those of Kafka's AclControlManager."""

from typing import Final

from kaspar.acls.acl import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType, select
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import random_uuid
from kaspar.controller.decision import Decision, Draft
from kaspar.controller.events import DONE, CreateAcls, DeleteAcls, DeletedAcls, Outcome
from kaspar.metadata.image import ClusterImage

MAX_CHANGES: Final = 10_000
"""Kafka's limit on the number of ACLs that one request creates or deletes."""


def create_acls(image: ClusterImage, event: CreateAcls) -> Decision[tuple[Outcome, ...]]:
    names = {acl.resource_name for acl in event.acls}
    existing = {acl for acl in image.acls.values() if acl.resource_name in names}
    added: dict[str, Acl] = {}
    outcomes = []
    for acl in event.acls:
        try:
            _check(acl)
        except Refused as refused:
            outcomes.append(Outcome.of(refused))
            continue
        if acl not in existing:
            existing.add(acl)
            added[_new_id(image)] = acl
        outcomes.append(DONE)
    if len(added) > MAX_CHANGES:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Cannot create more than {MAX_CHANGES} acls in a single operation.")
    draft = Draft(image)
    if added:
        draft.put_acls(added, ())
    return draft.decide(tuple(outcomes))


def delete_acls(image: ClusterImage, event: DeleteAcls) -> Decision[tuple[DeletedAcls, ...]]:
    """Delete the ACLs that match the filters. An ACL that matches several filters is in the reply to each of them."""
    removed: set[str] = set()
    replies = []
    for wanted in event.filters:
        try:
            _check_filter(wanted)
        except Refused as refused:
            replies.append(DeletedAcls((), Outcome.of(refused)))
            continue
        selected = select(image.acls.items(), wanted)
        removed.update(acl_id for acl_id, _ in selected)
        if len(removed) > MAX_CHANGES:
            raise Refused(
                ErrorCode.INVALID_REQUEST, f"Cannot remove more than {MAX_CHANGES} acls in a single delete operation."
            )
        replies.append(DeletedAcls(tuple(sorted(acl for _, acl in selected))))
    draft = Draft(image)
    if removed:
        draft.put_acls({}, removed)
    return draft.decide(tuple(replies))


def _new_id(image: ClusterImage) -> str:
    while (acl_id := random_uuid().hex) in image.acls:
        pass
    return acl_id


def _check(acl: Acl) -> None:
    if acl.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise _invalid(f"Invalid resourceType {acl.resource_type.name}")
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {acl.pattern_type.name}")
    if acl.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        raise _invalid(f"Invalid operation {acl.operation.name}")
    if acl.permission_type not in (AclPermissionType.ALLOW, AclPermissionType.DENY):
        raise _invalid(f"Invalid permissionType {acl.permission_type.name}")
    if not acl.resource_name:
        raise _invalid("Resource name should not be empty")
    if ":" not in acl.principal:
        raise _invalid(
            f"Could not parse principal from `{acl.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )


def _check_filter(wanted: AclFilter) -> None:
    if ResourceType.UNKNOWN in (wanted.resource_type, wanted.pattern_type):
        raise _invalid("Unknown patternFilter.")
    if AclOperation.UNKNOWN in (wanted.operation, wanted.permission_type):
        raise _invalid("Unknown entryFilter.")


def _invalid(problem: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, problem)
