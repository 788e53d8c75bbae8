"""Converts ACLs, credentials, tokens and quotas of Kafka's metadata log to Kaspar's."""

from collections.abc import Iterator
from typing import NamedTuple

from kaspar.acls.acl import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.metadata.kraft.security_records import AccessControlEntryRecord, DelegationTokenRecord
from kaspar.metadata.kraft.settings import counted, listed
from kaspar.metadata.kraft.state import Entity, KRaftState
from kaspar.quotas.entities import CLIENT_ID, DEFAULT, IP, USER, QuotaEntity
from kaspar.security.delegation_tokens import DelegationToken, Owner
from kaspar.security.scram import MECHANISM_TYPES, ScramCredential


class TakenSecurity(NamedTuple):
    """What is adopted. The names are those of the image's fields."""

    acls: dict[str, Acl]
    scram_credentials: dict[str, dict[str, ScramCredential]]
    delegation_tokens: dict[str, DelegationToken]
    client_quotas: dict[QuotaEntity, dict[str, float]]


def take_security(state: KRaftState) -> TakenSecurity:
    credentials: dict[str, dict[str, ScramCredential]] = {}
    for (user, mechanism), record in state.scram_credentials.items():
        if mechanism in MECHANISM_TYPES:
            credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
            credentials.setdefault(user, {})[MECHANISM_TYPES[mechanism]] = credential
    quotas: dict[QuotaEntity, dict[str, float]] = {}
    for (entity, limit), value in state.quotas.items():
        if (taken := _quota_entity(entity)) is not None:
            quotas.setdefault(taken, {})[limit] = value
    return TakenSecurity(
        {acl_id.hex: acl for acl_id, record in state.acls.items() if (acl := _acl(record)) is not None},
        credentials,
        {token_id: _token(record) for token_id, record in state.delegation_tokens.items()},
        quotas,
    )


def security_obstacles(state: KRaftState) -> Iterator[str]:
    """Unknown ACLs prevent the adoption, because omitting one might grant access."""
    unknown = [f"{each.principal} on {each.resource_name}" for each in state.acls.values() if _acl(each) is None]
    if unknown:
        yield f"{counted(unknown, 'ACL')} of a kind that is not known here: {listed(unknown)}"


def security_losses(state: KRaftState) -> Iterator[str]:
    users = sorted({user for user, mechanism in state.scram_credentials if mechanism not in MECHANISM_TYPES})
    if users:
        yield f"credentials for mechanisms that are not known here, of {counted(users, 'user')}: {listed(users)}"
    entities = sorted({_described(entity) for entity, _ in state.quotas if _quota_entity(entity) is None})
    if entities:
        yield f"quotas for entities of a kind that is not known here: {listed(entities)}"


def _acl(record: AccessControlEntryRecord) -> Acl | None:
    try:
        return Acl(
            ResourceType(record.resource_type),
            record.resource_name,
            PatternType(record.pattern_type),
            record.principal,
            record.host,
            AclOperation(record.operation),
            AclPermissionType(record.permission_type),
        )
    except ValueError:
        return None


def _token(record: DelegationTokenRecord) -> DelegationToken:
    return DelegationToken(
        record.token_id,
        _principal(record.owner),
        _principal(record.requester),
        tuple(map(_principal, record.renewers)),
        record.issue_timestamp,
        record.expiration_timestamp,
        record.max_timestamp,
    )


def _principal(text: str) -> Owner:
    kind, _, name = text.partition(":")
    return kind, name


def _quota_entity(entity: Entity) -> QuotaEntity | None:
    names = {kind: DEFAULT if name is None else name for kind, name in entity}
    if not names or not names.keys() <= {USER, CLIENT_ID, IP}:
        return None
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID), names.get(IP))


def _described(entity: Entity) -> str:
    return " and ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in entity)
