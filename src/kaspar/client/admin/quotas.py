"""The quotas of users, clients and IP addresses (KIP-546, KIP-612)."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from kaspar.base.errors import Refused
from kaspar.client.admin.session import Admin, common_code, refusal, refuse
from kaspar.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
    ResponseEntityData,
)
from kaspar.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
)
from kaspar.quotas.entities import CLIENT_ID, DEFAULT, IP, USER, QuotaEntity


class QuotaMatch(IntEnum):
    EXACT = 0
    DEFAULT = 1
    ANY = 2
    """Every entity with this part, including the default."""


class QuotaFilter(NamedTuple):
    """Matches entities by one of their parts."""

    entity_type: str
    match: QuotaMatch = QuotaMatch.ANY
    name: str | None = None

    @classmethod
    def of(cls, entity_type: str, name: str | None) -> "QuotaFilter":
        """A filter for a name, for the default (an empty name), or for all names (None)."""
        if name is None:
            return cls(entity_type)
        return cls(entity_type, QuotaMatch.DEFAULT) if name == DEFAULT else cls(entity_type, QuotaMatch.EXACT, name)


def describe_client_quotas(
    admin: Admin, filters: Iterable[QuotaFilter], *, strict: bool = False
) -> dict[QuotaEntity, dict[str, float]]:
    """The quotas of the entities that match all filters. With `strict`, entities with further parts are excluded: a
    filter for a user does not match that user's clients. Raises Refused."""
    response = admin.ask_any(
        "describeClientQuotas",
        DescribeClientQuotasRequest(
            components=tuple(
                ComponentData(entity_type=each.entity_type, match_type=each.match, match=each.name) for each in filters
            ),
            strict=strict,
        ),
        DescribeClientQuotasResponse,
    )
    refuse(response.error_code, response.error_message)
    return {
        _entity(entry.entity): {value.key: value.value for value in entry.values} for entry in response.entries or ()
    }


def alter_client_quotas(
    admin: Admin, changes: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
) -> dict[QuotaEntity, Refused | None]:
    """Set quotas, or remove those whose value is None. Returns for each entity why it was refused, or None."""
    response = admin.ask_any(
        "alterClientQuotas",
        AlterClientQuotasRequest(
            entries=tuple(_alteration(entity, quotas) for entity, quotas in changes.items()),
            validate_only=validate_only,
        ),
        AlterClientQuotasResponse,
        code_of=lambda response: common_code(each.error_code for each in response.entries),
    )
    return {_entity(each.entity): refusal(each.error_code, each.error_message) for each in response.entries}


def _alteration(entity: QuotaEntity, quotas: Mapping[str, float | None]) -> RequestEntryData:
    return RequestEntryData(
        entity=tuple(RequestEntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts()),
        ops=tuple(OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()),
    )


def _entity(parts: Iterable[EntityData | ResponseEntityData]) -> QuotaEntity:
    names = {part.entity_type: part.entity_name or DEFAULT for part in parts}
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID), names.get(IP))
