"""The first users of a secured cluster, created over the brokers' own listener: a super user, and a client with ACLs.

A user that exists is left alone, with its password and its ACLs: somebody may have changed them. The client's ACLs are
created before the client, so that they are complete if it exists.
"""

import secrets
from collections.abc import Mapping
from typing import Final

from kaspar.acls.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.client.admin.session import Admin, refuse
from kaspar.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from kaspar.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kaspar.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kaspar.security.scram import MECHANISM_TYPES, MIN_ITERATIONS, salted_password
from kaspar.supervisor.readiness import Contact

_ALL: Final = "*"
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
"""On every resource of these types: what producers and consumers need, and nothing of administration."""


def create_missing_users(contact: Contact, mechanism: str, passwords: Mapping[str, str], *, client: str) -> None:
    """Raises KasparError or OSError. `client` is the user that gets CLIENT_ACLS; the others are super users."""
    with Admin(contact.address, client_id="kaspar-supervisor", security=contact.security) as admin:
        missing = [name for name in passwords if not _exists(admin, name)]
        if client in missing:
            _create_acls(admin, client)
        if missing:
            _create_users(admin, mechanism, {name: passwords[name] for name in missing})


def _exists(admin: Admin, name: str) -> bool:
    request = DescribeUserScramCredentialsRequest(users=(UserName(name=name),))
    response = admin.ask_any("describeUserScramCredentials", request, DescribeUserScramCredentialsResponse)
    refuse(response.error_code, response.error_message)
    (found,) = response.results
    if found.error_code == ErrorCode.RESOURCE_NOT_FOUND:
        return False
    refuse(found.error_code, found.error_message)
    return True


def _create_acls(admin: Admin, user: str) -> None:
    creations = tuple(
        AclCreation(
            resource_type=resource,
            resource_name=_ALL,
            resource_pattern_type=PatternType.LITERAL,
            principal=f"User:{user}",
            host=_ALL,
            operation=operation,
            permission_type=AclPermissionType.ALLOW,
        )
        for resource, operations in CLIENT_ACLS.items()
        for operation in operations
    )
    response = admin.ask_controller("createAcls", CreateAclsRequest(creations=creations), CreateAclsResponse)
    for result in response.results:
        refuse(result.error_code, result.error_message)


def _create_users(admin: Admin, mechanism: str, passwords: Mapping[str, str]) -> None:
    type_of = {name: number for number, name in MECHANISM_TYPES.items()}
    upsertions = []
    for name, password in passwords.items():
        salt = secrets.token_bytes(24)
        upsertions.append(
            ScramCredentialUpsertion(
                name=name,
                mechanism=type_of[mechanism],
                iterations=MIN_ITERATIONS,
                salt=salt,
                salted_password=salted_password(mechanism, password, salt, MIN_ITERATIONS),
            )
        )
    request = AlterUserScramCredentialsRequest(deletions=(), upsertions=tuple(upsertions))
    response = admin.ask_controller("alterUserScramCredentials", request, AlterUserScramCredentialsResponse)
    for result in response.results:
        refuse(result.error_code, result.error_message)
