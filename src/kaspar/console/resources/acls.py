"""ACLs: listed by a filter, previewed, added and removed."""

from dataclasses import dataclass
from functools import partial

from kaspar.console import acls
from kaspar.console.acls import AclPage, AclQuery, AclView, Addition, Removal
from kaspar.console.http.endpoint import Call, Endpoint, changes, reads


@dataclass(frozen=True, slots=True)
class AclsBody:
    acls: tuple[AclView, ...]


@reads("/api/acls")
async def listed(call: Call) -> AclPage:
    query = AclQuery(
        call.text("resource_type"),
        call.text("resource_name"),
        call.text("pattern_type"),
        call.text("principal"),
        call.text("host"),
        call.text("operation"),
        call.text("permission_type"),
    )
    found = await call.shared(("acls", query), partial(acls.list_acls, query=query))
    return acls.select(found, call.number("offset", 0), call.limit())


async def _preview(call: Call) -> list[Addition]:
    """Preview ACLs. This changes nothing, so it is not in the audit log."""
    body = await call.body(AclsBody)
    return await call.ask(partial(acls.preview_additions, wanted=body.acls))


@changes("POST", "/api/acls", action="add ACLs", resource="ACLs")
async def add(call: Call) -> None:
    body = await call.body(AclsBody)
    _note(call, body)
    await call.ask(partial(acls.add, wanted=body.acls))


@changes("POST", "/api/acls/remove", action="remove ACLs", resource="ACLs")
async def remove(call: Call) -> Removal:
    body = await call.body(AclsBody)
    _note(call, body)
    return await call.ask(partial(acls.remove, wanted=body.acls))


def _note(call: Call, body: AclsBody) -> None:
    for each in body.acls:
        call.note(
            f"{each.permission_type} {each.principal} from {each.host or '*'} {each.operation} "
            f"{each.resource_type} {each.pattern_type} {each.resource_name}"
        )


ENDPOINTS = (listed, Endpoint("POST", "/api/acls/preview", _preview), add, remove)
