"""Decisions about client quotas. Rules, error codes and messages are those of Kafka's ClientQuotaControlManager."""

import ipaddress
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.controller.decision import Decision, Draft
from kaspar.controller.events import DONE, AlterClientQuotas, Outcome, QuotaAlteration, QuotaOutcome
from kaspar.metadata.image import ClusterImage
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

_ROUNDING: Final = 1e-6
_ORDER: Final = MappingProxyType({CLIENT_ID: 0, USER: 1, IP: 2})


class _Range(NamedTuple):
    """The largest value of a quota that takes whole numbers, and the name of its type in error messages."""

    highest: float
    kind: str


_LONG: Final = _Range(float((1 << 63) - 1), "a LONG")
_INT: Final = _Range(float((1 << 31) - 1), "an INT")
_OF_CLIENTS: Final[Mapping[str, _Range | None]] = MappingProxyType(
    {
        PRODUCER_BYTE_RATE: _LONG,
        CONSUMER_BYTE_RATE: _LONG,
        REQUEST_PERCENTAGE: None,
        CONTROLLER_MUTATION_RATE: None,
    }
)
_OF_ADDRESSES: Final[Mapping[str, _Range | None]] = MappingProxyType({CONNECTION_CREATION_RATE: _INT})


def alter_client_quotas(image: ClusterImage, event: AlterClientQuotas) -> Decision[tuple[QuotaOutcome, ...]]:
    """Alter quotas. If an entity is named twice, the first alteration is applied, and the outcome is the second's."""
    draft = Draft(image)
    outcomes: dict[tuple[tuple[str, str | None], ...], Outcome] = {}
    for alteration in event.alterations:
        named = _sorted(alteration.entity)
        try:
            if named in outcomes or _has_key_twice(alteration):
                raise _invalid(f"Ignoring duplicate entity {_text(alteration)}")
            entity = _entity(alteration)
            limits = _altered(draft, entity, alteration)
            if not event.validate_only:
                draft.put_quotas(entity, limits)
            outcomes[named] = DONE
        except Refused as refused:
            outcomes[named] = Outcome.of(refused)
    return draft.decide(tuple(QuotaOutcome(entity, outcome) for entity, outcome in outcomes.items()))


def _sorted(entity: tuple[tuple[str, str | None], ...]) -> tuple[tuple[str, str | None], ...]:
    """The entity's parts in the order of responses, which is that of Kafka's hash map. An entity is a mapping: if a
    type is named twice, the last name counts, and the order in the request has no meaning.
    """
    return tuple(sorted(dict(entity).items(), key=lambda part: (_ORDER.get(part[0], len(_ORDER)), part[0])))


def _has_key_twice(alteration: QuotaAlteration) -> bool:
    return len(dict(alteration.operations)) < len(alteration.operations)


def _text(alteration: QuotaAlteration) -> str:
    return "ClientQuotaEntity(entries={" + ", ".join(f"{kind}={name}" for kind, name in alteration.entity) + "})"


def _entity(alteration: QuotaAlteration) -> QuotaEntity:
    names = dict(alteration.entity)
    if not names:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in names.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP in names and len(names) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"  # Kafka's words
        )
    if names.get(IP) is not None and not _is_address(str(names[IP])):
        raise _invalid(f"{names[IP]} is not a valid IP: host names are not resolved.")
    return QuotaEntity(
        *(
            (DEFAULT if names[kind] is None else names[kind]) if kind in names else None
            for kind in (USER, CLIENT_ID, IP)
        )
    )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _altered(draft: Draft, entity: QuotaEntity, alteration: QuotaAlteration) -> dict[str, float]:
    """The entity's quotas after the alteration. Raises Refused if any part of it is invalid."""
    known = _OF_CLIENTS if entity.ip is None else _OF_ADDRESSES
    limits = dict(draft.quotas(entity))
    for key, value in alteration.operations:
        if value is None:
            limits.pop(key, None)
            continue
        _check(known, key, value)
        limits[key] = value
    return limits


def _check(known: Mapping[str, _Range | None], key: str, value: float) -> None:
    if key not in known:
        raise _invalid(f"Invalid configuration key {key}")
    if not value > 0:  # also refuses NaN
        raise _invalid(f"Quota {key} must be greater than 0")
    limits = known[key]
    if limits is None:
        return
    if value > limits.highest:
        raise _invalid(f"Proposed value for {key} is too large for {limits.kind}.")
    if value % 1 > _ROUNDING:
        raise _invalid(f"{key} cannot be a fractional value.")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
