"""/schemas: schemas by id or GUID, and the list of all schemas."""

import uuid
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from kaspar.registry.api.bodies import ContextId, SchemaByIdResponse, SchemaResponse, SubjectVersion
from kaspar.registry.api.endpoint import (
    DELETED,
    FIND_TAGS,
    FORMAT,
    LIMIT,
    OFFSET,
    REFERENCE_FORMAT,
    Access,
    Call,
    Endpoint,
    Raw,
)
from kaspar.registry.errors import schema_not_found
from kaspar.registry.names import ANY_CONTEXT, context_of, context_prefix, normalized
from kaspar.registry.queries import (
    alias_target,
    aliases_of_subjects,
    ids_by_guid,
    listed_schemas,
    schema_by_id,
    schemas_of_subject,
    versions_with_id,
)
from kaspar.registry.state import StoredVersion
from kaspar.schemas import SchemaType
from kaspar.web.openapi import Parameter, ParameterKind

_TAG: Final = "Schemas"
_SUBJECT: Final = Parameter("subject", ParameterKind.TEXT, "The subject, or just the context (`:.context:`), of the id")


async def _list(call: Call) -> list[SchemaResponse]:
    state, prefix = call.service.state, call.text("subjectPrefix", ANY_CONTEXT)
    deleted, latest_only = call.flag("deleted"), call.flag("latestOnly")
    found = listed_schemas(state, prefix, deleted=deleted, latest_only=latest_only)
    aliases: Mapping[str, list[str]] = {}
    if call.flag("aliases"):
        aliases = aliases_of_subjects(state, prefix)
        listed = list(found)
        others = aliases.keys() - {stored.subject for stored in listed}
        for subject in others:
            listed += schemas_of_subject(state, subject, deleted=deleted, latest_only=latest_only)
        found = iter(sorted(listed, key=lambda stored: (stored.subject, stored.version)))
    rule_type = call.text("ruleType")
    wanted = (each for each in found if call.may_read(each.subject) and (not rule_type or _has_rule(each, rule_type)))
    offset = max(0, call.number("offset", 0))
    page = islice(wanted, offset, offset + call.service.options.schema_search.page(call.number("limit", -1)))
    return [SchemaResponse.of(each, each.value.schema, aliases.get(each.subject)) for each in page]


def _has_rule(stored: StoredVersion, rule_type: str) -> bool:
    rule_set = stored.value.rule_set
    return rule_set is not None and any(rule.type == rule_type for rule in rule_set.rules())


async def _types(call: Call) -> list[str]:
    return [SchemaType.JSON.value, SchemaType.PROTOBUF.value, SchemaType.AVRO.value]


def _subject(call: Call) -> str:
    return alias_target(call.service.state, normalized(call.text("subject")))


def _find(call: Call) -> StoredVersion:
    schema_id = call.path_number("id")
    stored = schema_by_id(call.service.state, schema_id, _subject(call))
    if stored is None or not _readable(call, stored):
        raise schema_not_found(schema_id)
    return stored


def _readable(call: Call, stored: StoredVersion) -> bool:
    if call.may_read(stored.subject):
        return True
    same = call.service.state.index(context_of(stored.subject)).with_id(stored.id)
    return any(call.may_read(each.subject) for each in same)


async def _by_id(call: Call) -> SchemaByIdResponse:
    stored = _find(call)
    text = await call.service.formatted(stored, call.text("format"))
    max_id = call.service.state.index(context_of(stored.subject)).max_id if call.flag("fetchMaxId") else None
    return SchemaByIdResponse.of(
        stored,
        text,
        with_subject="subject" in call.query,
        tags=await call.found_tags(stored),
        max_id=max_id,
        reference_format=call.text("referenceFormat"),
    )


async def _text_by_id(call: Call) -> Raw:
    return Raw(await call.service.formatted(_find(call), call.text("format")))


def _versions(call: Call) -> list[StoredVersion]:
    schema_id = call.path_number("id")
    found = versions_with_id(call.service.state, schema_id, _subject(call), deleted=call.flag("deleted"))
    if found is None:
        raise schema_not_found(schema_id)
    offset = max(0, call.number("offset", 0))
    length = call.service.options.version_search.page(call.number("limit", -1))
    return [stored for stored in found if call.may_read(stored.subject)][offset : offset + length]


async def _subjects_by_id(call: Call) -> list[str]:
    return list(dict.fromkeys(stored.subject for stored in _versions(call)))


async def _versions_by_id(call: Call) -> list[SubjectVersion]:
    return [SubjectVersion(stored.subject, stored.version) for stored in _versions(call)]


def _with_guid(call: Call) -> Iterator[StoredVersion]:
    """The versions that the caller may read with this GUID, one per context and id."""
    try:
        identity = uuid.UUID(call.path["guid"]).bytes
    except ValueError:
        return
    for context, schema_id in ids_by_guid(call.service.state, identity):
        stored = schema_by_id(call.service.state, schema_id, context_prefix(context))
        if stored is not None and _readable(call, stored):
            yield stored


async def _by_guid(call: Call) -> SchemaByIdResponse:
    stored = next(_with_guid(call), None)
    if stored is None:
        raise schema_not_found(call.path["guid"])
    return SchemaByIdResponse.of(stored, await call.service.formatted(stored, call.text("format")))


async def _ids_by_guid(call: Call) -> list[ContextId]:
    found = [ContextId(context_of(stored.subject), stored.id) for stored in _with_guid(call)]
    if not found:
        raise schema_not_found(call.path["guid"])
    return found


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/schemas",
        _list,
        "All schemas, by subject and version",
        _TAG,
        Access.READ_ANY,
        list[SchemaResponse],
        parameters=(
            Parameter(
                "subjectPrefix", ParameterKind.TEXT, "A prefix of the subject; `:*:` is any context", ANY_CONTEXT
            ),
            Parameter("aliases", ParameterKind.FLAG, "Include the schemas of aliased subjects"),
            DELETED,
            Parameter("latestOnly", ParameterKind.FLAG, "Only the latest version of each subject"),
            Parameter("ruleType", ParameterKind.TEXT, "Only schemas that have a rule of this type"),
            OFFSET,
            LIMIT,
        ),
    ),
    Endpoint("GET", "/schemas/types", _types, "The formats of schemas", _TAG, Access.NOTHING, list[str]),
    Endpoint(
        "GET",
        "/schemas/ids/{id}",
        _by_id,
        "The schema with an id",
        _TAG,
        Access.READ_ANY,
        SchemaByIdResponse,
        parameters=(
            _SUBJECT,
            FORMAT,
            REFERENCE_FORMAT,
            FIND_TAGS,
            Parameter("fetchMaxId", ParameterKind.FLAG, "Include the highest id of the context"),
        ),
        errors=(40403,),
    ),
    Endpoint(
        "GET",
        "/schemas/ids/{id}/schema",
        _text_by_id,
        "Only the text of the schema with an id",
        _TAG,
        Access.READ_ANY,
        Raw,
        parameters=(_SUBJECT, FORMAT),
        errors=(40403,),
    ),
    Endpoint(
        "GET",
        "/schemas/ids/{id}/subjects",
        _subjects_by_id,
        "The subjects that have the schema with an id",
        _TAG,
        Access.READ_ANY,
        list[str],
        parameters=(_SUBJECT, DELETED, OFFSET, LIMIT),
        errors=(40403,),
    ),
    Endpoint(
        "GET",
        "/schemas/ids/{id}/versions",
        _versions_by_id,
        "The subjects and versions that have the schema with an id",
        _TAG,
        Access.READ_ANY,
        list[SubjectVersion],
        parameters=(_SUBJECT, DELETED, OFFSET, LIMIT),
        errors=(40403,),
    ),
    Endpoint(
        "GET",
        "/schemas/guids/{guid}",
        _by_guid,
        "The schema with a GUID, which is the same in every registry",
        _TAG,
        Access.READ_ANY,
        SchemaByIdResponse,
        parameters=(FORMAT,),
        errors=(40403,),
    ),
    Endpoint(
        "GET",
        "/schemas/guids/{guid}/ids",
        _ids_by_guid,
        "The contexts that have the schema with a GUID, and its ids there",
        _TAG,
        Access.READ_ANY,
        list[ContextId],
        errors=(40403,),
    ),
)
