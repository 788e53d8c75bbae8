"""The quotas of users, client ids and IP addresses."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.client.admin.quotas import QuotaFilter, alter_client_quotas, describe_client_quotas
from kaspar.client.admin.session import Admin, raise_first
from kaspar.console.problems import Conflict, Unacceptable
from kaspar.quotas.entities import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    DEFAULT,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    QuotaEntity,
)

OF_CLIENTS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
OF_ADDRESSES: Final = (CONNECTION_CREATION_RATE,)


@dataclass(frozen=True, slots=True)
class EntityPart:
    type: str
    """`user`, `client-id` or `ip`."""
    name: str | None
    """None for the default entity: all that have no quota of their own."""


@dataclass(frozen=True, slots=True)
class QuotaRow:
    entity: tuple[EntityPart, ...]
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QuotaPage:
    rows: tuple[QuotaRow, ...]
    matching: int
    total: int


def list_quotas(admin: Admin) -> list[QuotaRow]:
    """All quotas, sorted by entity. Raises Refused."""
    rows = [QuotaRow(_parts(entity), dict(sorted(each.items()))) for entity, each in _all(admin).items()]
    return sorted(rows, key=_order)


def select(rows: Sequence[QuotaRow], search: str, offset: int, limit: int) -> QuotaPage:
    wanted = search.casefold()
    matching = [row for row in rows if any(wanted in _text(part).casefold() for part in row.entity)]
    return QuotaPage(tuple(matching[offset : offset + limit]), len(matching), len(rows))


def change(
    admin: Admin, parts: Sequence[EntityPart], values: Mapping[str, float | None], seen: Mapping[str, float]
) -> None:
    """Set quotas of an entity, and remove those whose value is None. `seen` is the state that the page showed: if the
    current state differs, this is a Conflict. Raises Refused, Unacceptable and Conflict."""
    entity = entity_of(parts)
    check_values(entity, values)
    now = _of(admin, entity)
    if dict(seen) != now:
        raise Conflict("These quotas were changed by someone else in the meantime: reload them.")
    changes = {name: value for name, value in values.items() if value != now.get(name)}
    if changes:
        raise_first(alter_client_quotas(admin, {entity: changes}).values())


def entity_of(parts: Sequence[EntityPart]) -> QuotaEntity:
    """The entity of these parts. Raises Unacceptable."""
    names: dict[str, str] = {}
    for part in parts:
        if part.type not in (USER, CLIENT_ID, IP) or part.type in names:
            raise Unacceptable(f"{part.type} cannot have a quota here.")
        if part.name == "":
            raise Unacceptable(f"The name of the {part.type} is missing.")
        names[part.type] = DEFAULT if part.name is None else part.name
    if not names:
        raise Unacceptable("A quota must be for a user, a client id, both, or an IP address.")
    if IP in names and len(names) > 1:
        raise Unacceptable("The quota of an IP address cannot be combined with a user or a client id.")
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID), names.get(IP))


def check_values(entity: QuotaEntity, values: Mapping[str, float | None]) -> None:
    """Raises Unacceptable."""
    allowed = OF_CLIENTS if entity.ip is None else OF_ADDRESSES
    for name, value in values.items():
        if name not in allowed:
            raise Unacceptable(f"{name} is not a quota of {'clients' if entity.ip is None else 'IP addresses'}.")
        if value is not None and not (math.isfinite(value) and value > 0):
            raise Unacceptable(f"{name} must be a number above 0.")


def _all(admin: Admin) -> dict[QuotaEntity, dict[str, float]]:
    return describe_client_quotas(admin, [])


def _of(admin: Admin, entity: QuotaEntity) -> dict[str, float]:
    filters = [QuotaFilter.of(kind, name or DEFAULT) for kind, name in entity.parts()]
    return describe_client_quotas(admin, filters, strict=True).get(entity, {})


def _parts(entity: QuotaEntity) -> tuple[EntityPart, ...]:
    """The parts of an entity: user, client id, IP address."""
    parts = [EntityPart(kind, name) for kind, name in entity.parts()]
    return tuple(sorted(parts, key=lambda part: (USER, CLIENT_ID, IP).index(part.type)))


def _order(row: QuotaRow) -> tuple[tuple[str, bool, str], ...]:
    """The sort key of a row: by type, defaults first."""
    return tuple((part.type, part.name is not None, part.name or "") for part in row.entity)


def _text(part: EntityPart) -> str:
    return f"{part.type} {'default' if part.name is None else part.name}"
