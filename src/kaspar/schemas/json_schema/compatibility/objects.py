"""Objects: properties, required properties, dependencies, and the content model (ObjectSchemaDiff)."""

from kaspar.schemas.json_schema.compatibility.comparison import Findings
from kaspar.schemas.json_schema.compatibility.content_models import (
    compare_additional,
    compare_unevaluated,
    is_open,
    schema_of_property,
)
from kaspar.schemas.json_schema.compatibility.differences import Kind
from kaspar.schemas.json_schema.compatibility.limits import compare_limit
from kaspar.schemas.json_schema.nodes import AnySchema, FalseSchema, Link, ObjectSchema


def compare_objects(found: Findings, original: ObjectSchema, update: ObjectSchema) -> None:
    _compare_required(found, original, update)
    for name in sorted(original.properties.keys() | update.properties.keys()):
        _compare_property(found, name, original, update)
    _compare_dependent_required(found, original, update)
    _compare_dependent_schemas(found, original, update)
    compare_additional(found, "additionalProperties", "ADDITIONAL_PROPERTIES", original, update)
    compare_unevaluated(
        found, "unevaluatedProperties", "UNEVALUATED_PROPERTIES", original.unevaluated, update.unevaluated
    )
    compare_limit(found, "maxProperties", "MAX_PROPERTIES", original.max_properties, update.max_properties)
    compare_limit(found, "minProperties", "MIN_PROPERTIES", original.min_properties, update.min_properties)


def _compare_required(found: Findings, original: ObjectSchema, update: ObjectSchema) -> None:
    """Compare whether the properties that both schemas name are required."""
    for name in sorted(original.properties.keys() & update.properties.keys()):
        if name in original.required and name not in update.required:
            found.add(Kind.REQUIRED_ATTRIBUTE_REMOVED, "required", name)
        elif name in update.required and name not in original.required:
            has_default = _has_default(update.properties[name])
            kind = Kind.REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED if has_default else Kind.REQUIRED_ATTRIBUTE_ADDED
            found.add(kind, "required", name)


def _compare_property(found: Findings, name: str, original: ObjectSchema, update: ObjectSchema) -> None:
    before, after = original.properties.get(name), update.properties.get(name)
    if after is None and before is not None:
        _compare_removed(found, name, before, update)
    elif before is None and after is not None:
        _compare_added(found, name, original, after, required=name in update.required)
    else:
        found.compare(before, after, "properties", name)


def _compare_removed(found: Findings, name: str, before: Link, update: ObjectSchema) -> None:
    """The new content model decides: it may or may not accept the property."""
    path = ("properties", name)
    if is_open(update):
        found.add(Kind.PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL, *path)
    elif (cover := schema_of_property(update, name)) is not None:
        differences = found.between(before.schema, cover.schema)
        found.include(differences, *path)
        if found.accepts(differences):
            found.add(Kind.PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, *path)
        else:
            found.add(Kind.PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, *path)
    elif isinstance(before.schema, FalseSchema):
        found.add(Kind.PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL, *path)
    else:
        found.add(Kind.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL, *path)


def _compare_added(found: Findings, name: str, original: ObjectSchema, after: Link, *, required: bool) -> None:
    """The old content model decides: values that it accepted under this name may not fit the property."""
    path = ("properties", name)
    if is_open(original):
        found.add(_kind_added_to_open(after, required=required), *path)
        return
    if (cover := schema_of_property(original, name)) is not None:
        differences = found.between(cover.schema, after.schema)
        found.include(differences, *path)
        if found.accepts(differences):
            found.add(Kind.PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, *path)
        else:
            found.add(Kind.PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, *path)
    if not required:
        found.add(Kind.OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL, *path)
    elif _has_default(after):
        found.add(Kind.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL, *path)
    else:
        found.add(Kind.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL, *path)


def _kind_added_to_open(after: Link, *, required: bool) -> Kind:
    if isinstance(after.schema, AnySchema):
        return Kind.PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
    if not required:
        return Kind.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL
    if _has_default(after):
        return Kind.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
    return Kind.REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL


def _has_default(link: Link) -> bool:
    return link.schema.annotations.default is not None


def _compare_dependent_required(found: Findings, original: ObjectSchema, update: ObjectSchema) -> None:
    for name in sorted(original.dependent_required.keys() | update.dependent_required.keys()):
        before, after = original.dependent_required.get(name), update.dependent_required.get(name)
        if before == after:
            continue
        if after is None:
            kind = Kind.DEPENDENCY_ARRAY_REMOVED
        elif before is None:
            kind = Kind.DEPENDENCY_ARRAY_ADDED
        elif after > before:
            kind = Kind.DEPENDENCY_ARRAY_EXTENDED
        elif after < before:
            kind = Kind.DEPENDENCY_ARRAY_NARROWED
        else:
            kind = Kind.DEPENDENCY_ARRAY_CHANGED
        found.add(kind, "dependencies", name)


def _compare_dependent_schemas(found: Findings, original: ObjectSchema, update: ObjectSchema) -> None:
    for name in sorted(original.dependent_schemas.keys() | update.dependent_schemas.keys()):
        before, after = original.dependent_schemas.get(name), update.dependent_schemas.get(name)
        if after is None:
            found.add(Kind.DEPENDENCY_SCHEMA_REMOVED, "dependencies", name)
        elif before is None:
            found.add(Kind.DEPENDENCY_SCHEMA_ADDED, "dependencies", name)
        else:
            found.compare(before, after, "dependencies", name)
