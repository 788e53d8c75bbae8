"""What an object or an array allows besides the properties or items that it names.

Its content model is open if it allows anything, closed if it allows nothing, and partially open if a schema decides.
"""

from kaspar.schemas.json_schema.compatibility.comparison import Findings
from kaspar.schemas.json_schema.compatibility.differences import Kind
from kaspar.schemas.json_schema.nodes import AnySchema, ArraySchema, FalseSchema, Link, ObjectSchema, Schema
from kaspar.schemas.json_schema.patterns import UncheckablePattern, matches


def is_open(schema: ObjectSchema | ArraySchema) -> bool:
    if isinstance(schema, ObjectSchema) and schema.patterns:
        return False
    if not schema.allows_additional or schema.additional is not None:
        return False
    return schema.unevaluated is None or isinstance(schema.unevaluated.schema, AnySchema)


def schema_of_property(schema: ObjectSchema, name: str) -> Link | None:
    """The schema of a property that the object does not name, in a partially open content model."""
    for pattern, link in schema.patterns.items():
        if _covers(pattern, name):
            return link
    return schema_of_others(schema)


def _covers(pattern: str, name: str) -> bool:
    """A pattern that cannot be matched covers nothing: a property is refused rather than accepted by mistake."""
    try:
        return matches(pattern, name)
    except UncheckablePattern:
        return False


def schema_of_others(schema: ObjectSchema | ArraySchema) -> Link | None:
    if schema.additional is not None:
        return schema.additional
    unevaluated = schema.unevaluated
    if not schema.allows_additional or unevaluated is None:
        return None
    return None if isinstance(unevaluated.schema, AnySchema | FalseSchema) else unevaluated


def compare_additional(
    found: Findings,
    keyword: str,
    name: str,
    original: ObjectSchema | ArraySchema,
    update: ObjectSchema | ArraySchema,
) -> None:
    """`additionalProperties` or `additionalItems`; `name` is the common prefix of the kinds of difference."""
    if original.allows_additional != update.allows_additional:
        found.add(Kind[f"{name}_ADDED" if update.allows_additional else f"{name}_REMOVED"], keyword)
    elif original.additional is None and update.additional is not None:
        found.add(Kind[f"{name}_NARROWED"], keyword)
    elif original.additional is not None and update.additional is None:
        found.add(Kind[f"{name}_EXTENDED"], keyword)
    else:
        found.compare(original.additional, update.additional, keyword)


def compare_unevaluated(found: Findings, keyword: str, name: str, original: Link | None, update: Link | None) -> None:
    """`unevaluatedProperties` or `unevaluatedItems`. Adding one counts as narrowing, even if it is `true`."""
    if original is None and update is None:
        return
    if _is(FalseSchema, original) != _is(FalseSchema, update):
        found.add(Kind[f"{name}_REMOVED" if _is(FalseSchema, update) else f"{name}_ADDED"], keyword)
    elif original is None or (_is(AnySchema, original) and not _is(AnySchema, update) and update is not None):
        found.add(Kind[f"{name}_NARROWED"], keyword)
    elif update is None or _is(AnySchema, original) != _is(AnySchema, update):
        found.add(Kind[f"{name}_EXTENDED"], keyword)
    else:
        found.compare(original, update, keyword)


def _is(kind: type[Schema], link: Link | None) -> bool:
    return link is not None and isinstance(link.schema, kind)
