"""allOf, anyOf and oneOf, also if only one of the schemas is combined (CombinedSchemaDiff, SchemaDiff), and not
(NotSchemaDiff)."""

from collections.abc import Sequence

from kaspar.schemas.json_schema.compatibility.comparison import Findings
from kaspar.schemas.json_schema.compatibility.differences import Difference, Kind
from kaspar.schemas.json_schema.compatibility.matching import maximum_matching
from kaspar.schemas.json_schema.nodes import CombinedSchema, Criterion, NotSchema, Schema


def extends_to(found: Findings, original: Schema, update: CombinedSchema) -> bool:
    """Whether one schema of `update` accepts all that `original` allows, so that the others do not matter."""
    if len(update.subschemas) > 1 and update.criterion is Criterion.ALL:
        return False
    for subschema in update.subschemas:
        differences = found.between(original, subschema.schema)
        if found.accepts(differences):
            found.include(differences)
            if len(update.subschemas) > 1:
                found.add(Kind.SUM_TYPE_EXTENDED)
            return True
    return False


def narrows_to(found: Findings, original: CombinedSchema, update: Schema) -> bool:
    """Whether `update` accepts all that one schema of `original` allows, if values have to fit all of `original`'s."""
    if len(original.subschemas) > 1 and original.criterion is not Criterion.ALL:
        return False
    for subschema in original.subschemas:
        differences = found.between(subschema.schema, update)
        if found.accepts(differences):
            found.include(differences)
            if len(original.subschemas) > 1:
                found.add(Kind.PRODUCT_TYPE_NARROWED)
            return True
    return False


def compare_combined(found: Findings, original: CombinedSchema, update: CombinedSchema) -> None:
    """Each schema of the side with fewer of them needs its own compatible schema on the other side."""
    if original.criterion is not update.criterion:
        if not _may_become(original, update):
            found.add(Kind.COMBINED_TYPE_CHANGED)
            return
        found.add(Kind.COMBINED_TYPE_EXTENDED)
    before, after = len(original.distinct), len(update.distinct)
    if before < after:
        extended = Kind.PRODUCT_TYPE_EXTENDED if update.criterion is Criterion.ALL else Kind.SUM_TYPE_EXTENDED
        found.add(extended)
    elif before > after:
        narrowed = Kind.PRODUCT_TYPE_NARROWED if original.criterion is Criterion.ALL else Kind.SUM_TYPE_NARROWED
        found.add(narrowed)
    compatible = _compatible_pairs(found, original, update)
    matching = maximum_matching([sorted(rights) for rights in compatible], after)
    for i, right in enumerate(matching):
        if right is not None:
            found.include(compatible[i][right], f"{original.criterion.value}/{i}")
    if sum(right is not None for right in matching) < min(before, after):
        found.add(Kind.COMBINED_TYPE_SUBSCHEMAS_CHANGED)


def _may_become(original: CombinedSchema, update: CombinedSchema) -> bool:
    one_before, one_after = len(original.subschemas) == 1, len(update.subschemas) == 1
    return (
        update.criterion is Criterion.ANY
        or (one_before and (one_after or update.criterion is Criterion.ONE))
        or (one_after and original.criterion is Criterion.ALL)
    )


def _compatible_pairs(
    found: Findings, original: CombinedSchema, update: CombinedSchema
) -> list[dict[int, Sequence[Difference]]]:
    pairs: list[dict[int, Sequence[Difference]]] = []
    for left in original.distinct:
        differences = [found.between(left.schema, right.schema) for right in update.distinct]
        pairs.append({i: nested for i, nested in enumerate(differences) if found.accepts(nested)})
    return pairs


def compare_negations(found: Findings, original: NotSchema, update: NotSchema) -> None:
    """`not` may only forbid less than before, so the direction of the comparison is reversed."""
    differences = found.between(update.negated.schema, original.negated.schema)
    found.add(Kind.NOT_TYPE_NARROWED if found.accepts(differences) else Kind.NOT_TYPE_EXTENDED, "not")
