"""/v3/clusters/{cluster_id}/acls."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, TypeVar

import msgspec
from starlette.responses import Response

from kaspar.acls.acl import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.client.admin.acls import create_acls, delete_acls, describe_acls
from kaspar.client.admin.session import accepted, raise_first
from kaspar.rest.errors import BAD_REQUEST, RestError
from kaspar.rest.http import no_content
from kaspar.rest.v3.clusters import CLUSTER
from kaspar.rest.v3.endpoint import Call, Endpoint
from kaspar.rest.v3.errors import missing
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.resources import ListMetadata, Metadata, Resource, ResourceList
from kaspar.web.openapi import Parameter, ParameterKind

_TAG: Final = "ACL"
_ACLS: Final = f"{CLUSTER}/acls"
_KINDS: Final[dict[str, type[IntEnum]]] = {
    "resource_type": ResourceType,
    "pattern_type": PatternType,
    "operation": AclOperation,
    "permission": AclPermissionType,
}
"""The fields of an ACL whose values are enumerated."""

_Kind = TypeVar("_Kind", bound=IntEnum)


class AclData(Resource, kw_only=True):
    kind: str = "KafkaAcl"
    cluster_id: str
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class AclDataList(ResourceList, kw_only=True):
    kind: str = "KafkaAclList"
    data: list[AclData]


class DeleteAclsResponse(msgspec.Struct):
    data: list[AclData]


class CreateAclRequest(msgspec.Struct, forbid_unknown_fields=True):
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class CreateAclsRequest(msgspec.Struct, forbid_unknown_fields=True):
    data: list[CreateAclRequest]


_CREATE: Final = msgspec.json.Decoder(CreateAclRequest)
_CREATE_MANY: Final = msgspec.json.Decoder(CreateAclsRequest)


async def _search(call: Call) -> AclDataList:
    wanted, names = _filter(call), call.names()
    acls = await call.ask(lambda admin: describe_acls(admin, wanted))
    query = {
        "resource_type": ResourceType(wanted.resource_type).name,
        "resource_name": wanted.resource_name or "",
        "pattern_type": PatternType(wanted.pattern_type).name,
        "principal": wanted.principal or "",
        "host": wanted.host or "",
        "operation": AclOperation(wanted.operation).name,
        "permission": AclPermissionType(wanted.permission_type).name,
    }
    return AclDataList(metadata=ListMetadata(names.url("acls", query=query)), data=_many(names, acls))


async def _create(call: Call) -> Response:
    acl, names = _acl(await call.body(_CREATE)), call.names()
    await call.ask(lambda admin: raise_first(create_acls(admin, [acl]).values()))
    response = Response(status_code=201)
    response.headers["location"] = names.url("acls", query=_query(acl))
    return response


async def _create_many(call: Call) -> Response:
    acls = [_acl(each) for each in (await call.body(_CREATE_MANY)).data]
    await call.ask(lambda admin: raise_first(create_acls(admin, acls).values()))
    return no_content()


async def _delete(call: Call) -> DeleteAclsResponse:
    for name in _KINDS:
        if name not in call.request.query_params:
            raise RestError(BAD_REQUEST, f"{name} cannot be unspecified or UNKNOWN")
    wanted, names = _filter(call), call.names()
    deleted = await call.ask(lambda admin: accepted(delete_acls(admin, [wanted])[0]))
    return DeleteAclsResponse(_many(names, deleted))


# --- Requests ---------------------------------------------------------------------------------------------------------


def _filter(call: Call) -> AclFilter:
    return AclFilter(
        _wanted(call, "resource_type", ResourceType),
        call.text("resource_name") or None,
        _wanted(call, "pattern_type", PatternType),
        call.text("principal") or None,
        call.text("host") or None,
        _wanted(call, "operation", AclOperation),
        _wanted(call, "permission", AclPermissionType),
    )


def _wanted(call: Call, name: str, kind: type[_Kind]) -> _Kind:
    """The enum value of a query parameter. Raises RestError: 404 for an unknown name, as in Confluent's proxy."""
    found = _named(kind, call.text(name, "ANY"))
    if found is None:
        raise missing()
    if found.name == "UNKNOWN":
        raise RestError(BAD_REQUEST, f"{name} cannot be UNKNOWN")
    return found


def _acl(request: CreateAclRequest) -> Acl:
    return Acl(
        _given("resource_type", ResourceType, request.resource_type),
        request.resource_name,
        _given("pattern_type", PatternType, request.pattern_type),
        request.principal,
        request.host,
        _given("operation", AclOperation, request.operation),
        _given("permission", AclPermissionType, request.permission),
    )


def _given(name: str, kind: type[_Kind], text: str) -> _Kind:
    """The enum value of a field in the body. Raises RestError."""
    found = _named(kind, text)
    if found is None:
        raise RestError(BAD_REQUEST, f"{name} cannot be {text}")
    if found.name in ("ANY", "MATCH", "UNKNOWN"):
        raise RestError(BAD_REQUEST, f"{name} cannot be {found.name}")
    return found


def _named(kind: type[_Kind], text: str) -> _Kind | None:
    return next((each for each in kind if each.name == text.upper()), None)


# --- Responses --------------------------------------------------------------------------------------------------------


def _many(names: ResourceNames, acls: Sequence[Acl]) -> list[AclData]:
    return [_one(names, each) for each in sorted(acls)]


def _one(names: ResourceNames, acl: Acl) -> AclData:
    return AclData(metadata=Metadata(names.url("acls", query=_query(acl))), cluster_id=names.cluster_id, **_query(acl))


def _query(acl: Acl) -> dict[str, str]:
    """The query parameters that select this ACL; its fields in responses have the same names."""
    return {
        "resource_type": acl.resource_type.name,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission_type.name,
    }


def _parameters(*, is_required: bool) -> tuple[Parameter, ...]:
    """The query parameters of a search or a deletion. A deletion requires some of them."""
    kinds = tuple(
        Parameter(
            name,
            ParameterKind.TEXT,
            f"The {name.replace('_', ' ')} of the ACLs",
            default=None if is_required else "ANY",
            choices=tuple(each.name for each in kind if each.name != "UNKNOWN"),
            is_required=is_required,
        )
        for name, kind in _KINDS.items()
    )
    texts = ("resource_name", "principal", "host")
    return (*kinds, *(Parameter(each, ParameterKind.TEXT, f"Their {each.replace('_', ' ')}") for each in texts))


ENDPOINTS: Final = (
    Endpoint("GET", _ACLS, _search, "Search ACLs", _TAG, AclDataList, parameters=_parameters(is_required=False)),
    Endpoint("POST", _ACLS, _create, "Create an ACL", _TAG, None, 201, CreateAclRequest),
    Endpoint("POST", f"{_ACLS}:batch", _create_many, "Create ACLs", _TAG, None, 204, CreateAclsRequest),
    Endpoint(
        "DELETE", _ACLS, _delete, "Delete ACLs", _TAG, DeleteAclsResponse, parameters=_parameters(is_required=True)
    ),
)
