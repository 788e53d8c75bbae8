"""A parsed Avro schema: Confluent's AvroSchema."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaspar.schemas.avro.canonical import to_text
from kaspar.schemas.avro.json_text import check_depth
from kaspar.schemas.avro.normalized import to_normalized_text
from kaspar.schemas.avro.parser import Parser
from kaspar.schemas.avro.types import AvroType, Record
from kaspar.schemas.schema import InvalidSchema, SchemaType


@dataclass(frozen=True, slots=True, eq=False)
class AvroSchema:
    """`root` is the graph of types, including those of the references; in `canonical` these are only names."""

    root: AvroType
    canonical: str
    reference_texts: tuple[str, ...]
    reference_names: frozenset[str]

    @property
    def type(self) -> SchemaType:
        return SchemaType.AVRO

    @property
    def name(self) -> str | None:
        return self.root.name.full if isinstance(self.root, Record) else None

    @property
    def normalized(self) -> str:
        text = to_normalized_text(self.root, self.reference_names)
        return _parse(text, self.reference_texts, validate_defaults=False).canonical

    def formatted(self, form: str) -> str:
        return to_text(self.root) if form == "resolved" else self.canonical


def parse(text: str, references: Mapping[str, str], *, validate_defaults: bool = True) -> AvroSchema:
    """Parse a schema. Confluent checks the defaults of schemas that are registered, but not of those already stored."""
    return _parse(text, tuple(references.values()), validate_defaults=validate_defaults)


def _parse(text: str, reference_texts: tuple[str, ...], *, validate_defaults: bool) -> AvroSchema:
    parser = Parser(validate_defaults=validate_defaults)
    reference_names = frozenset(parser.parse(reference).union_name for reference in reference_texts)
    root = parser.parse(text)
    canonical = to_text(root, reference_names)
    check_depth(canonical)  # types that were used before their definition are now nested deeper
    _check_encodable(canonical)
    return AvroSchema(root, canonical, reference_texts, reference_names)


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidSchema("The schema has half of a surrogate pair, which is no character") from None
