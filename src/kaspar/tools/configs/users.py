"""The quotas of users, clients and IP addresses, and the SCRAM credentials of users."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.quotas import QuotaFilter, alter_client_quotas, describe_client_quotas
from kaspar.client.admin.scram import (
    NewScramCredential,
    OldScramCredential,
    ScramCredentialInfo,
    alter_scram_credentials,
    describe_scram_credentials,
)
from kaspar.client.admin.session import Admin, raise_first
from kaspar.quotas.entities import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    QuotaEntity,
)
from kaspar.security.scram import HASHES, MIN_ITERATIONS
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.configs.entities import CLIENTS, DEFAULT_NAME, IPS, USERS, Entities
from kaspar.tools.java_numbers import format_double, parse_int
from kaspar.tools.kafka_errors import exception_text

_QUOTAS: Final = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE})
_PARTS: Final = {USERS: USER, CLIENTS: CLIENT_ID, IPS: IP}
_TITLES: Final = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}
_CREDENTIAL: Final = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)", re.DOTALL)


# --- describe -------------------------------------------------------------------------------------------------------


def describe_users(admin: Admin, entities: Entities) -> None:
    """Print the quotas, and for users alone also their credentials. Raises Refused or CommandFailed."""
    for line in sorted(describe_quotas(*each) for each in _quotas(admin, entities).items()):
        print(line)
    if entities.types != (USERS,) or DEFAULT_NAME in entities.names:
        return
    for user, found in describe_scram_credentials(admin, entities.names or None).items():
        if not isinstance(found, Refused):
            infos = ", ".join(f"{each.mechanism}=iterations={each.iterations}" for each in found)
            print(f"SCRAM credential configs for user-principal '{user}' are {infos}")
        elif found.code is not ErrorCode.RESOURCE_NOT_FOUND:
            reason = f"ExecutionException: {exception_text(found)}"
            print(f"Error retrieving SCRAM credential configs for user-principal '{user}': {reason}")


def describe_quotas(entity: QuotaEntity, quotas: Mapping[str, float]) -> str:
    names = dict(entity.parts())
    parts = []
    for kind, title in _TITLES.items():
        if kind in names:
            parts.append(f"the default {title}" if names[kind] is None else f"{title} '{names[kind]}'")
    values = ", ".join(f"{key}={format_double(value)}" for key, value in sorted(quotas.items()))
    return f"Quota configs for {', '.join(parts)} are {values}"


def _quotas(admin: Admin, entities: Entities) -> dict[QuotaEntity, dict[str, float]]:
    if len(entities.names) > len(entities.types):
        raise CommandFailed("More entity names specified than entity types")
    missing = [None] * (len(entities.types) - len(entities.names))
    named = zip(entities.types, (*entities.names, *missing), strict=True)
    return describe_client_quotas(admin, [QuotaFilter.of(_PARTS[kind], name) for kind, name in named], strict=True)


# --- alter ----------------------------------------------------------------------------------------------------------


def alter_users(admin: Admin, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    """Change quotas of users and clients, or credentials of a user. Raises Refused or CommandFailed."""
    check_user_configs(entities, added, deleted)
    if any(name in _QUOTAS for name in (*added, *deleted)):
        _alter_quotas(admin, entities, added, deleted)
    else:
        _alter_credentials(admin, entities.names[0], added, deleted)


def alter_ips(admin: Admin, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    """Change the quotas of IP addresses. Raises Refused or CommandFailed."""
    if unknown := [name for name in (*added, *deleted) if name != CONNECTION_CREATION_RATE]:
        raise CommandFailed(
            f"Only connection quota configs can be added for '{IPS}' using --bootstrap-server. "
            f"Unexpected config names: {','.join(unknown)}"
        )
    _alter_quotas(admin, entities, added, deleted)


def check_user_configs(entities: Entities, added: Collection[str], deleted: Collection[str]) -> None:
    """Raise CommandFailed if users or clients do not have these settings."""
    has_clients = CLIENTS in entities.types
    allowed = _QUOTAS if has_clients else _QUOTAS | HASHES.keys()
    kinds, whose = ("quota", CLIENTS) if has_clients else ("quota and SCRAM credential", USERS)
    if unknown := sorted({*added} - allowed):
        raise CommandFailed(
            f"Only {kinds} configs can be added for '{whose}' using --bootstrap-server. "
            f"Unexpected config names: Set({', '.join(unknown)})"
        )
    if unknown := [name for name in deleted if name not in allowed]:
        raise CommandFailed(
            f"Only {kinds} configs can be deleted for '{whose}' using --bootstrap-server. "
            f"Unexpected config names: ArrayBuffer({', '.join(unknown)})"
        )
    names = {*added, *deleted}
    if names.isdisjoint(HASHES):
        return
    if DEFAULT_NAME in entities.names:
        raise CommandFailed(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using "
            "--bootstrap-server."
        )
    if not names.isdisjoint(_QUOTAS):
        raise CommandFailed(
            f"Cannot alter both quota and SCRAM credential configs simultaneously for '{USERS}' using "
            "--bootstrap-server."
        )


def _alter_quotas(admin: Admin, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    entity = _entity(entities)
    old = _quotas(admin, entities).get(entity, {})
    if unknown := [name for name in deleted if name not in old]:
        raise CommandFailed(f"Invalid config(s): {','.join(unknown)}")
    changes: dict[str, float | None] = {name: _number(name, text) for name, text in added.items()}
    raise_first(alter_client_quotas(admin, {entity: changes | dict.fromkeys(deleted)}).values())


def _entity(entities: Entities) -> QuotaEntity:
    names = dict(zip(entities.types, entities.names, strict=True))
    return QuotaEntity(names.get(USERS), names.get(CLIENTS), names.get(IPS))


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CommandFailed(f"Cannot parse quota configuration value for {name}: {text}") from None


def _alter_credentials(admin: Admin, user: str, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    new = [_credential(user, mechanism, text) for mechanism, text in added.items()]
    old = [OldScramCredential(user, mechanism) for mechanism in deleted]
    raise_first(alter_scram_credentials(admin, new, old).values())


def _credential(user: str, mechanism: str, text: str) -> NewScramCredential:
    match = _CREDENTIAL.fullmatch(text)
    if match is None:
        raise CommandFailed(f"Invalid credential property {mechanism.replace('-', '_')}={text}")
    given, password = match.groups()
    try:
        iterations = MIN_ITERATIONS if given in (None, "-1") else parse_int(given)
    except ValueError:
        raise CommandFailed(f'For input string: "{given}"') from None
    if iterations < MIN_ITERATIONS:
        raise CommandFailed(
            f"Iterations {iterations} is less than the minimum {MIN_ITERATIONS} required for {mechanism}"
        )
    return NewScramCredential(user, password, ScramCredentialInfo(mechanism, iterations))
