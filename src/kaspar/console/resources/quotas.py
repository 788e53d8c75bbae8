"""Quotas of users, client ids and IP addresses: listed, set and removed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from kaspar.console import quotas
from kaspar.console.http.endpoint import Call, changes, reads
from kaspar.console.quotas import EntityPart, QuotaPage


@dataclass(frozen=True, slots=True)
class QuotaBody:
    entity: tuple[EntityPart, ...]
    values: Mapping[str, float | None]
    """None removes a quota."""
    seen: Mapping[str, float] = field(default_factory=dict)
    """The values that the page showed."""


@reads("/api/quotas")
async def listed(call: Call) -> QuotaPage:
    rows = await call.shared("quotas", quotas.list_quotas)
    limit = call.limit()
    return quotas.select(rows, call.text("search"), call.number("offset", 0), limit)


@changes("PUT", "/api/quotas", action="change quotas", resource="quotas")
async def change(call: Call) -> None:
    body = await call.body(QuotaBody)
    whom = ", ".join(f"{each.type} {'(default)' if each.name is None else each.name}" for each in body.entity)
    call.note(f"{whom}: {', '.join(f'{name}={value}' for name, value in body.values.items())}")
    await call.ask(partial(quotas.change, parts=body.entity, values=body.values, seen=body.seen))


ENDPOINTS = (listed, change)
