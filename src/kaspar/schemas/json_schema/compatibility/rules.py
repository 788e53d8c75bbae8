"""Which rules apply to a pair of nodes (SchemaDiff)."""

from kaspar.schemas.json_schema.compatibility.arrays import compare_arrays
from kaspar.schemas.json_schema.compatibility.combined import (
    compare_combined,
    compare_negations,
    extends_to,
    narrows_to,
)
from kaspar.schemas.json_schema.compatibility.comparison import Findings
from kaspar.schemas.json_schema.compatibility.differences import Kind
from kaspar.schemas.json_schema.compatibility.objects import compare_objects
from kaspar.schemas.json_schema.compatibility.scalars import (
    compare_constants,
    compare_enums,
    compare_numbers,
    compare_strings,
)
from kaspar.schemas.json_schema.nodes import (
    AnySchema,
    ArraySchema,
    CombinedSchema,
    ConstSchema,
    EnumSchema,
    FalseSchema,
    NotSchema,
    NumberSchema,
    ObjectSchema,
    Schema,
    StringSchema,
)


def compare_schemas(found: Findings, original: Schema, update: Schema) -> None:
    match original, update:
        case CombinedSchema(), CombinedSchema():
            pass
        case _, CombinedSchema() if extends_to(found, original, update):
            return
        case CombinedSchema(), _ if narrows_to(found, original, update):
            return
    if type(original) is type(update):
        _compare_annotations(found, original, update)
        _compare_kind(found, original, update)
    elif not (isinstance(original, FalseSchema) or isinstance(update, AnySchema) or _are_bytes(original, update)):
        found.add(Kind.TYPE_CHANGED)


def _are_bytes(original: Schema, update: Schema) -> bool:
    """Whether both are decimals of Kafka Connect, whose converter used to write strings and now writes numbers."""
    return original.annotations.connect_type == update.annotations.connect_type == "bytes"


def _compare_annotations(found: Findings, original: Schema, update: Schema) -> None:
    before, after = original.annotations, update.annotations
    if before.id != after.id:
        found.add(Kind.ID_CHANGED)
    if before.title != after.title:
        found.add(Kind.TITLE_CHANGED)
    if before.description != after.description:
        found.add(Kind.DESCRIPTION_CHANGED)
    if before.default != after.default:
        found.add(Kind.DEFAULT_CHANGED)


def _compare_kind(found: Findings, original: Schema, update: Schema) -> None:
    """Apply the rules of one kind. Confluent's registry has none for if/then/else."""
    match original, update:
        case StringSchema(), StringSchema():
            compare_strings(found, original, update)
        case NumberSchema(), NumberSchema():
            compare_numbers(found, original, update)
        case ConstSchema(), ConstSchema():
            compare_constants(found, original, update)
        case EnumSchema(), EnumSchema():
            compare_enums(found, original, update)
        case CombinedSchema(), CombinedSchema():
            compare_combined(found, original, update)
        case NotSchema(), NotSchema():
            compare_negations(found, original, update)
        case ObjectSchema(), ObjectSchema():
            compare_objects(found, original, update)
        case ArraySchema(), ArraySchema():
            compare_arrays(found, original, update)
