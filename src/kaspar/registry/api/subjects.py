"""/subjects: subjects and their versions."""

from dataclasses import replace
from itertools import islice
from typing import Final

from kaspar.registry.api.bodies import RegisterRequest, RegisterResponse, SchemaResponse, TagsRequest
from kaspar.registry.api.endpoint import (
    DELETED,
    DELETED_ONLY,
    FIND_TAGS,
    FORMAT,
    LIMIT,
    NORMALIZE,
    OFFSET,
    PERMANENT,
    REFERENCE_FORMAT,
    Access,
    Call,
    Endpoint,
    Raw,
    WriteTexts,
)
from kaspar.registry.decisions.registration import NO_VERSION, NewSchema
from kaspar.registry.entities import (
    InvalidRules,
    RuleSet,
    merged_rule_sets,
    with_confluent_version,
    without_rules,
)
from kaspar.registry.errors import (
    invalid_rule_set,
    invalid_subject,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from kaspar.registry.interfaces import NotLeader
from kaspar.registry.names import ANY_CONTEXT, is_valid_subject
from kaspar.registry.queries import latest_with_metadata, listed_subjects, listed_versions, referring_versions
from kaspar.registry.references import LATEST, version_in_contexts
from kaspar.registry.state import Listing, StoredVersion
from kaspar.web.openapi import Parameter, ParameterKind

_TAG: Final = "Subjects"


def _listing(call: Call) -> Listing:
    if call.flag("deletedOnly"):
        return Listing.DELETED
    return Listing.ALL if call.flag("deleted") else Listing.LIVE


async def _list(call: Call) -> list[str]:
    found = listed_subjects(call.service.state, call.text("subjectPrefix", ANY_CONTEXT), _listing(call))
    readable = (subject for subject in found if call.may_read(subject))
    offset = max(0, call.number("offset", 0))
    return [*islice(readable, offset, offset + call.service.options.subject_search.page(call.number("limit", -1)))]


def _check_exists(call: Call, subject: str, *, deleted: bool) -> None:
    if not call.service.state.has_subject(subject, deleted=deleted):
        raise subject_not_found(subject)


async def _response(call: Call, stored: StoredVersion) -> SchemaResponse:
    text = await call.service.formatted(stored, call.text("format"))
    tags = await call.found_tags(stored)
    return SchemaResponse.of(stored, text, tags=tags, reference_format=call.text("referenceFormat"))


async def _look_up(call: Call) -> SchemaResponse:
    subject, deleted = call.subject, call.flag("deleted")
    new = call.decoded(RegisterRequest).for_subject(subject)
    call.check_references(new)
    stored = await call.service.find_version(new, normalize=call.flag("normalize"), deleted=deleted)
    if stored is None or not call.may_read(stored.subject):
        _check_exists(call, subject, deleted=deleted)
        raise schema_not_found()
    return await _response(call, stored)


async def _latest_with_metadata(call: Call) -> SchemaResponse:
    subject, deleted = call.subject, call.flag("deleted")
    properties = dict(zip(call.texts("key"), call.texts("value"), strict=False))
    stored = latest_with_metadata(call.service.state, subject, properties, deleted=deleted)
    if stored is None:
        _check_exists(call, subject, deleted=deleted)
        raise schema_not_found()
    return await _response(call, stored)


async def _delete_subject(call: Call) -> list[int]:
    return await call.service.delete_subject(call.subject, permanent=call.flag("permanent"))


async def _versions(call: Call) -> list[int]:
    subject, negative = call.subject, call.flag("deletedAsNegative")
    listing = Listing.ALL if negative else _listing(call)
    _check_exists(call, subject, deleted=listing is not Listing.LIVE)
    found = listed_versions(call.service.state, subject, listing)
    numbers = (-each.version if negative and each.deleted else each.version for each in found)
    offset = max(0, call.number("offset", 0))
    return [*islice(numbers, offset, offset + call.service.options.version_search.page(call.number("limit", -1)))]


def _check_rules(rule_set: RuleSet | None) -> None:
    if rule_set is None:
        return
    try:
        rule_set.check()
    except InvalidRules as problem:
        raise invalid_rule_set(str(problem)) from None


async def _register(call: Call) -> RegisterResponse:
    request = call.decoded(RegisterRequest)
    _check_rules(request.rule_set)
    if not is_valid_subject(call.path["subject"]):
        raise invalid_subject(call.path["subject"])
    new = request.for_subject(call.subject)
    call.check_references(new)
    if request.schema_tags_to_add or request.schema_tags_to_remove:
        tagged = await call.service.tagged(new, request.schema_tags_to_add or (), request.schema_tags_to_remove or ())
        new = replace(tagged, version=LATEST if new.version == NO_VERSION else new.version)
    return RegisterResponse.of(await call.service.register(new, normalize=call.flag("normalize")), new)


def _find_version(call: Call, *, deleted: bool) -> StoredVersion:
    subject, version = call.subject, call.version
    stored = version_in_contexts(call.service.state, subject, version, deleted=deleted)
    if stored is None or not call.may_read(stored.subject):
        _check_exists(call, subject, deleted=deleted)
        raise version_not_found(version)
    return stored


async def _version(call: Call) -> SchemaResponse:
    return await _response(call, _find_version(call, deleted=call.flag("deleted")))


async def _version_text(call: Call) -> Raw:
    stored = _find_version(call, deleted=call.flag("deleted"))
    return Raw(await call.service.formatted(stored, call.text("format")))


async def _referenced_by(call: Call) -> list[int]:
    stored = _find_version(call, deleted=True)
    referring = referring_versions(call.service.state, stored.subject, stored.version)
    return sorted({each.id for each in referring if call.may_read(each.subject)})


async def _change_tags(call: Call) -> RegisterResponse:
    """Register the version again with changed tags. The leader looks it up, because a follower may not have it yet."""
    if not call.service.leadership.is_leader:
        raise NotLeader("this instance is not the leader")
    request = call.decoded(TagsRequest)
    _check_rules(request.rule_set)
    _check_rules(request.rules_to_merge)
    stored = _find_version(call, deleted=False)
    value, new_version = stored.value, request.new_version or NO_VERSION
    new = NewSchema(
        call.subject,
        value.schema,
        value.type,
        stored.references,
        # The registry replaces this number by that of the new version.
        with_confluent_version(value.metadata if request.metadata is None else request.metadata, new_version),
        _changed_rules(call, request),
        new_version,
    )
    new = await call.service.tagged(new, request.tags_to_add or (), request.tags_to_remove or ())
    return RegisterResponse.of(await call.service.register(new, normalize=False), new)


def _changed_rules(call: Call, request: TagsRequest) -> RuleSet | None:
    if request.rules_to_merge is None and request.rules_to_remove is None:
        return request.rule_set
    versions = call.service.state.versions(call.subject)
    before = versions.latest_live() if request.new_version is None else versions.get(request.new_version - 1)
    rules = None if before is None or before.deleted else before.value.rule_set
    return without_rules(merged_rule_sets(rules, request.rules_to_merge), request.rules_to_remove or ())


async def _delete_version(call: Call) -> int:
    return await call.service.delete_version(
        call.subject, call.version, permanent=call.flag("permanent"), requested=call.path["version"]
    )


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/subjects",
        _list,
        "The names of subjects",
        _TAG,
        Access.READ_ANY,
        list[str],
        parameters=(
            Parameter("subjectPrefix", ParameterKind.TEXT, "A prefix of the name; `:*:` is any context", ANY_CONTEXT),
            DELETED,
            DELETED_ONLY,
            OFFSET,
            LIMIT,
        ),
    ),
    Endpoint(
        "POST",
        "/subjects/{subject}",
        _look_up,
        "The version under which a schema is registered",
        _TAG,
        Access.READ_SUBJECT,
        SchemaResponse,
        parameters=(NORMALIZE, FORMAT, DELETED),
        body=RegisterRequest,
        errors=(40401, 40403, 42201),
    ),
    Endpoint(
        "DELETE",
        "/subjects/{subject}",
        _delete_subject,
        "Delete all versions of a subject, first softly, then permanently",
        _TAG,
        Access.WRITE_SUBJECT,
        list[int],
        parameters=(PERMANENT,),
        errors=(40401, 40404, 40405, 42205, 42206),
        writes=WriteTexts(
            "Delete Subject operation timed out",
            "Delete Subject operation failed while writing to the Kafka store",
            "Error while forwarding delete subject request to the leader",
        ),
    ),
    Endpoint(
        "GET",
        "/subjects/{subject}/metadata",
        _latest_with_metadata,
        "The latest version whose metadata has these properties",
        _TAG,
        Access.READ_SUBJECT,
        SchemaResponse,
        parameters=(
            Parameter("key", ParameterKind.TEXTS, "Names of properties"),
            Parameter("value", ParameterKind.TEXTS, "Their values, in the same order"),
            FORMAT,
            DELETED,
        ),
        errors=(40401, 40403),
    ),
    Endpoint(
        "GET",
        "/subjects/{subject}/versions",
        _versions,
        "The versions of a subject",
        _TAG,
        Access.READ_SUBJECT,
        list[int],
        parameters=(
            DELETED,
            DELETED_ONLY,
            Parameter("deletedAsNegative", ParameterKind.FLAG, "Include soft-deleted versions, as negative numbers"),
            OFFSET,
            LIMIT,
        ),
        errors=(40401,),
    ),
    Endpoint(
        "POST",
        "/subjects/{subject}/versions",
        _register,
        "Register a schema as a new version of a subject",
        _TAG,
        Access.WRITE_SUBJECT,
        RegisterResponse,
        parameters=(NORMALIZE,),
        body=RegisterRequest,
        errors=(409, 42201, 42205, 42208, 42209, 42210),
        writes=WriteTexts(
            "Register operation timed out",
            "Register schema operation failed while writing to the Kafka store",
            "Error while forwarding register schema request to the leader",
        ),
    ),
    Endpoint(
        "GET",
        "/subjects/{subject}/versions/{version}",
        _version,
        "A version of a subject: a number, or `latest`",
        _TAG,
        Access.READ_SUBJECT,
        SchemaResponse,
        parameters=(FORMAT, REFERENCE_FORMAT, FIND_TAGS, DELETED),
        errors=(40401, 40402, 42202),
    ),
    Endpoint(
        "DELETE",
        "/subjects/{subject}/versions/{version}",
        _delete_version,
        "Delete a version of a subject, first softly, then permanently",
        _TAG,
        Access.WRITE_SUBJECT,
        int,
        parameters=(PERMANENT,),
        errors=(40401, 40402, 40406, 40407, 42202, 42205, 42206),
        writes=WriteTexts(
            "Delete Schema Version operation timed out",
            "Delete Schema Version operation failed while writing to the Kafka store",
            "Error while forwarding delete schema version request to the leader",
        ),
    ),
    Endpoint(
        "POST",
        "/subjects/{subject}/versions/{version}/tags",
        _change_tags,
        "Register a version with other tags inside of its schema as a new version; Avro only",
        _TAG,
        Access.WRITE_SUBJECT,
        RegisterResponse,
        body=TagsRequest,
        errors=(40401, 40402, 409, 42201, 42202, 42205, 42209, 42210),
        writes=WriteTexts(
            "Register operation timed out",
            "Register schema operation failed while writing to the Kafka store",
            "Error while forwarding register schema request to the leader",
        ),
    ),
    Endpoint(
        "GET",
        "/subjects/{subject}/versions/{version}/schema",
        _version_text,
        "Only the text of a version",
        _TAG,
        Access.READ_SUBJECT,
        Raw,
        parameters=(FORMAT, DELETED),
        errors=(40401, 40402, 42202),
    ),
    Endpoint(
        "GET",
        "/subjects/{subject}/versions/{version}/referencedby",
        _referenced_by,
        "The ids of schemas that refer to a version",
        _TAG,
        Access.READ_SUBJECT,
        list[int],
        errors=(40401, 40402, 42202),
    ),
)
