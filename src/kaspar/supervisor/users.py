"""The first users of a secured cluster, created over the brokers' own listener: a super user, and a client with ACLs.

An existing user keeps its password and its ACLs, because an administrator may have changed them. The client's ACLs are
created before the client, so that they are complete if the client exists.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kaspar.acls.acl import WILDCARD, Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.acls import create_acls
from kaspar.client.admin.scram import (
    NewScramCredential,
    ScramCredentialInfo,
    alter_scram_credentials,
    describe_scram_credentials,
)
from kaspar.client.admin.session import Admin
from kaspar.supervisor.readiness import Contact

CLIENT_ACLS: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    ResourceType.TOPIC: (
        AclOperation.CREATE,
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DESCRIBE_CONFIGS,
    ),
    ResourceType.GROUP: (AclOperation.READ,),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT),
}
"""Granted on every resource of these types: what producers and consumers need, and no administration."""


def create_missing_users(contact: Contact, mechanism: str, passwords: Mapping[str, str], *, client: str) -> None:
    """Create the users that do not exist. `client` is the user that gets CLIENT_ACLS; the others are super users.
    Raises KasparError or OSError.
    """
    with Admin(contact.address, client_id="kaspar-supervisor", security=contact.security) as admin:
        missing = [name for name in passwords if not _exists(admin, name)]
        if client in missing:
            _create_acls(admin, client)
        if missing:
            _create_users(admin, mechanism, {name: passwords[name] for name in missing})


def _exists(admin: Admin, name: str) -> bool:
    found = describe_scram_credentials(admin, [name])[name]
    if isinstance(found, Refused) and found.code is not ErrorCode.RESOURCE_NOT_FOUND:
        raise found
    return not isinstance(found, Refused)


def _create_acls(admin: Admin, user: str) -> None:
    acls = [
        Acl(resource, WILDCARD, PatternType.LITERAL, f"User:{user}", WILDCARD, operation, AclPermissionType.ALLOW)
        for resource, operations in CLIENT_ACLS.items()
        for operation in operations
    ]
    _raise_first(create_acls(admin, acls).values())


def _create_users(admin: Admin, mechanism: str, passwords: Mapping[str, str]) -> None:
    info = ScramCredentialInfo(mechanism)
    new = [NewScramCredential(name, password, info) for name, password in passwords.items()]
    _raise_first(alter_scram_credentials(admin, new).values())


def _raise_first(results: Iterable[Refused | None]) -> None:
    for refused in results:
        if refused is not None:
            raise refused
