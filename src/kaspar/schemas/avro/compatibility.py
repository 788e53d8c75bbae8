"""Whether a reader's schema can decode what a writer's schema encoded: the rules of Java's SchemaCompatibility, in the
words of Confluent's Difference.

Findings are cached per pair of types, with the path where the pair first occurred, as in Java. This also ends
recursion: a pair that occurs again within itself counts as compatible. Each rule is a generator that yields the pairs
it depends on and receives their findings, so that a long chain of records needs no deep stack.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, cast

from kaspar.schemas.avro.canonical import to_text
from kaspar.schemas.avro.schema import AvroSchema
from kaspar.schemas.avro.types import Array, AvroType, Enumeration, Field, Fixed, Map, NamedNode, Record, Union
from kaspar.schemas.levels import escaped
from kaspar.schemas.schema import ParsedSchema

# Nested records multiply their findings, and unions multiply the pairs.
MAX_FINDINGS: Final = 1_000
MAX_PAIRS: Final = 300_000

_PROMOTIONS: Final = frozenset(
    (
        ("long", "int"),
        ("float", "int"),
        ("float", "long"),
        ("double", "int"),
        ("double", "long"),
        ("double", "float"),
        ("bytes", "string"),
        ("string", "bytes"),
    )
)  # (reader, writer)


class Rule(Enum):
    """Why a pair is incompatible (Java's SchemaIncompatibilityType), and how Confluent describes it. The first %s is
    the reader's side, the second one the writer's."""

    NAME_MISMATCH = "The name of the schema has changed (path '{path}')"
    FIXED_SIZE_MISMATCH = (
        "The size of FIXED type field at path '{path}' in the %s schema does not match with the %s schema"
    )
    MISSING_ENUM_SYMBOLS = "The %s schema is missing enum symbols '{detail}' at path '{path}' in the %s schema"
    READER_FIELD_MISSING_DEFAULT_VALUE = (
        "The field '{detail}' at path '{path}' in the %s schema has no default value and is missing in the %s schema"
    )
    TYPE_MISMATCH = "The type (path '{path}') of a field in the %s schema does not match with the %s schema"
    MISSING_UNION_BRANCH = "The %s schema is missing a type inside a union field at path '{path}' in the %s schema"


Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    rule: Rule
    path: Path
    detail: str

    def message(self) -> str:
        path, detail = escaped("/" + "/".join(self.path)), escaped(self.detail)
        description = self.rule.value.format(path=path, detail=detail)
        return f"{{errorType:'{self.rule.name}', description:'{description}', additionalInfo:'{detail}'}}"


Findings = tuple[Finding, ...]
Pair = tuple[AvroType, AvroType, Path]
Steps = Generator[Pair, Findings, Findings]


class _Undecidable(Exception):
    """The comparison has no result; the registry reports that and refuses the schema."""


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> Sequence[str]:
    try:
        findings = _compare(cast(AvroSchema, reader).root, cast(AvroSchema, writer).root)
    except _Undecidable as error:
        return [escaped(f"Unexpected exception during compatibility check: {error}")]
    return [finding.message() for finding in findings]


def _compare(reader: AvroType, writer: AvroType) -> Findings:
    """Run the rules. A pair that is being compared has no findings yet."""
    known: dict[tuple[int, int], Findings] = {(id(reader), id(writer)): ()}
    running: list[tuple[tuple[int, int], Steps]] = [((id(reader), id(writer)), _rules(reader, writer, ()))]
    received: Findings | None = None
    while running:
        pair, steps = running[-1]
        try:
            inner_reader, inner_writer, path = steps.send(received) if received is not None else next(steps)
        except StopIteration as done:
            running.pop()
            known[pair] = received = done.value[:MAX_FINDINGS]
            continue
        inner_pair = (id(inner_reader), id(inner_writer))
        received = known.get(inner_pair)
        if received is None:
            if len(known) == MAX_PAIRS:
                raise _Undecidable(f"the schemas have more than {MAX_PAIRS} pairs of types to compare")
            known[inner_pair] = ()
            running.append((inner_pair, _rules(inner_reader, inner_writer, path)))
    assert received is not None
    return received


def _rules(reader: AvroType, writer: AvroType, path: Path) -> Steps:
    match reader, writer:
        case Union(), Union():
            return (yield from _unions(reader, writer, path))
        case _, Union():
            return (yield from _every_branch(reader, writer, path))
        case Union(), _:
            return (yield from _some_branch(reader, writer, path))
        case Array(), Array():
            return (yield reader.items, writer.items, (*path, "items"))
        case Map(), Map():
            return (yield reader.values, writer.values, (*path, "values"))
        case Fixed(), Fixed():
            return _names(reader, writer, path) + _fixed_sizes(reader, writer, path)
        case Enumeration(), Enumeration():
            return _names(reader, writer, path) + _enum_symbols(reader, writer, path)
        case Record(), Record():
            fields = yield from _record_fields(reader, writer, path)
            return _names(reader, writer, path) + fields
        case _:
            return _kinds(reader, writer, path)


def _kinds(reader: AvroType, writer: AvroType, path: Path) -> Findings:
    if reader.kind == writer.kind or (reader.kind, writer.kind) in _PROMOTIONS:
        return ()
    detail = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    return (Finding(Rule.TYPE_MISMATCH, path, detail),)


def _names(reader: NamedNode, writer: NamedNode, path: Path) -> Findings:
    """The names without their namespaces have to be equal, or an alias of the reader names the writer's type."""
    if reader.name.simple == writer.name.simple or writer.name.full in reader.alias_names():
        return ()
    return (Finding(Rule.NAME_MISMATCH, (*path, "name"), f"expected: {writer.name.full}"),)


def _fixed_sizes(reader: Fixed, writer: Fixed, path: Path) -> Findings:
    if reader.size == writer.size:
        return ()
    detail = f"expected: {writer.size}, found: {reader.size}"
    return (Finding(Rule.FIXED_SIZE_MISMATCH, (*path, "size"), detail),)


def _enum_symbols(reader: Enumeration, writer: Enumeration, path: Path) -> Findings:
    """If the reader's enum has a default, it stands for all symbols that the reader does not know."""
    missing = set(writer.symbols) - set(reader.symbols)
    if not missing or reader.default is not None:
        return ()
    return (Finding(Rule.MISSING_ENUM_SYMBOLS, (*path, "symbols"), f"[{', '.join(sorted(missing))}]"),)


def _record_fields(reader: Record, writer: Record, path: Path) -> Steps:
    findings: list[Finding] = []
    writer_fields = {field.name: field for field in writer.fields}
    for position, field in enumerate(reader.fields):
        field_path = (*path, "fields", str(position))
        if (written := _written_field(field, position, writer_fields, writer)) is not None:
            findings += yield field.type, written.type, (*field_path, "type")
        elif field.has_default:
            continue
        elif isinstance(field.type, Enumeration) and field.type.default is not None:
            # Java compares the enum with the writer's record here, and so reports a mismatch of their types.
            findings += yield field.type, writer, (*field_path, "type")
        else:
            findings.append(Finding(Rule.READER_FIELD_MISSING_DEFAULT_VALUE, field_path, field.name))
        del findings[MAX_FINDINGS:]
    return tuple(findings)


def _written_field(field: Field, position: int, writer_fields: dict[str, Field], writer: Record) -> Field | None:
    """The writer's field of the same name, or of one of the reader's aliases."""
    found = [writer_fields[name] for name in (field.name, *field.aliases) if name in writer_fields]
    if len(found) > 1:
        reader_field = f"{field.name} type:{field.type.kind.upper()} pos:{position}"
        raise _Undecidable(
            f"Reader record field {reader_field} matches multiple fields in writer record schema {to_text(writer)}"
        )
    return found[0] if found else None


def _unions(reader: Union, writer: Union, path: Path) -> Steps:
    """Each branch of the writer has to be readable. Findings within a branch are not reported."""
    findings: list[Finding] = []
    for index, branch in enumerate(writer.branches):
        if (yield reader, branch, ()):
            findings.append(_missing_branch(branch, (*path, str(index))))
    return tuple(findings)


def _every_branch(reader: AvroType, writer: Union, path: Path) -> Steps:
    findings: list[Finding] = []
    for index, branch in enumerate(writer.branches):
        findings += yield reader, branch, (*path, str(index))
    return tuple(findings)


def _some_branch(reader: Union, writer: AvroType, path: Path) -> Steps:
    for branch in reader.branches:
        if not (yield branch, writer, ()):
            return ()
    return (_missing_branch(writer, path),)


def _missing_branch(writer: AvroType, path: Path) -> Finding:
    return Finding(Rule.MISSING_UNION_BRANCH, path, f"reader union lacking writer type: {writer.kind.upper()}")
