"""DescribeClientQuotas: the quotas of the entities that match a filter, from the image.

The rules for filters, with their codes and messages, are those of Kafka's ClientQuotasImage.
"""

from enum import IntEnum
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kaspar.quotas.entities import CLIENT_ID, IP, USER, Limits, QuotaEntity


class MatchType(IntEnum):
    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2
    """Any name, and the default."""


class _Any:
    """Used instead of a name: every name matches."""


ANY: Final = _Any()


class DescribeClientQuotasHandler:
    def __init__(self, images: ImageSource) -> None:
        self._images = images

    def __call__(self, context: RequestContext, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
        try:
            wanted = _filter(request.components)
        except Refused as refusal:
            return DescribeClientQuotasResponse(error_code=refusal.code, error_message=refusal.message, entries=None)
        quotas = self._images.current.client_quotas
        return DescribeClientQuotasResponse(
            error_message="",  # not null, as in Kafka
            entries=tuple(
                _entry(entity, limits)
                for entity, limits in quotas.items()
                if _matches(dict(entity.parts()), wanted, strict=request.strict)
            ),
        )


def _filter(components: tuple[ComponentData, ...]) -> dict[str, str | _Any | None]:
    """The filter by type of entity: the name, None for the default, or ANY."""
    wanted: dict[str, str | _Any | None] = {}
    for component in components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in wanted:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        match component.match_type:
            case MatchType.EXACT:
                if match is None:
                    raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
                wanted[kind] = match
            case MatchType.DEFAULT | MatchType.SPECIFIED as match_type:
                if match is not None:
                    name = MatchType(match_type).name
                    raise _invalid(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")
                wanted[kind] = None if match_type == MatchType.DEFAULT else ANY
            case unknown:
                raise _invalid(f"Unknown match type {unknown}")
    if IP in wanted and len(wanted) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )
    return wanted


def _matches(entity: dict[str, str | None], wanted: dict[str, str | _Any | None], *, strict: bool) -> bool:
    """Whether an entity matches a filter. If `strict`, it has no other types, so an empty filter matches nothing."""
    if strict and len(entity) != len(wanted):
        return False
    return all(kind in entity and (name is ANY or entity[kind] == name) for kind, name in wanted.items())


def _entry(entity: QuotaEntity, limits: Limits) -> EntryData:
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts()),
        values=tuple(ValueData(key=key, value=value) for key, value in limits.items()),
    )


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
