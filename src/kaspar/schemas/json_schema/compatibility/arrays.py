"""Arrays: a schema for all items, schemas of the first items, and the content model (ArraySchemaDiff)."""

from kaspar.schemas.json_schema.compatibility.comparison import Findings
from kaspar.schemas.json_schema.compatibility.content_models import (
    compare_additional,
    compare_unevaluated,
    is_open,
    schema_of_others,
)
from kaspar.schemas.json_schema.compatibility.differences import Kind
from kaspar.schemas.json_schema.compatibility.limits import compare_limit
from kaspar.schemas.json_schema.nodes import AnySchema, ArraySchema, FalseSchema, Link


def compare_arrays(found: Findings, original: ArraySchema, update: ArraySchema) -> None:
    found.compare(original.all_items, update.all_items, "items")
    _compare_items(found, original, update)
    compare_additional(found, "additionalItems", "ADDITIONAL_ITEMS", original, update)
    compare_unevaluated(found, "unevaluatedItems", "UNEVALUATED_ITEMS", original.unevaluated, update.unevaluated)
    compare_limit(found, "maxItems", "MAX_ITEMS", original.max_items, update.max_items)
    compare_limit(found, "minItems", "MIN_ITEMS", original.min_items, update.min_items)
    if original.unique != update.unique:
        found.add(Kind.UNIQUE_ITEMS_REMOVED if original.unique else Kind.UNIQUE_ITEMS_ADDED, "uniqueItems")
    compare_limit(found, "maxContains", "MAX_CONTAINS", original.max_contains, update.max_contains)
    compare_limit(found, "minContains", "MIN_CONTAINS", original.min_contains, update.min_contains)


def _compare_items(found: Findings, original: ArraySchema, update: ArraySchema) -> None:
    common = min(len(original.items), len(update.items))
    for i in range(common):
        found.compare(original.items[i], update.items[i], f"items/{i}")
    for i in range(common, len(original.items)):
        _compare_removed(found, f"items/{i}", original.items[i], update)
    for i in range(common, len(update.items)):
        _compare_added(found, f"items/{i}", original, update.items[i])


def _compare_removed(found: Findings, path: str, before: Link, update: ArraySchema) -> None:
    if is_open(update):
        found.add(Kind.ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL, path)
    elif (cover := schema_of_others(update)) is not None:
        differences = found.between(before.schema, cover.schema)
        found.include(differences, path)
        if found.accepts(differences):
            found.add(Kind.ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, path)
        else:
            found.add(Kind.ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, path)
    elif isinstance(before.schema, FalseSchema):
        found.add(Kind.ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL, path)
    else:
        found.add(Kind.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL, path)


def _compare_added(found: Findings, path: str, original: ArraySchema, after: Link) -> None:
    if is_open(original):
        is_any = isinstance(after.schema, AnySchema)
        found.add(
            Kind.ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
            if is_any
            else Kind.ITEM_ADDED_TO_OPEN_CONTENT_MODEL,
            path,
        )
    elif (cover := schema_of_others(original)) is not None:
        differences = found.between(cover.schema, after.schema)
        found.include(differences, path)
        if found.accepts(differences):
            found.add(Kind.ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, path)
        else:
            found.add(Kind.ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, path)
    else:
        found.add(Kind.ITEM_ADDED_TO_CLOSED_CONTENT_MODEL, path)
