"""Parses Spark types without a JVM, because the data source runs in Python processes that have none.

A schema is a DDL string ("id BIGINT, tags ARRAY<STRING>") or the JSON of a schema (`df.schema.json()`), as everywhere
in Spark. Everything is nullable, as in from_json: a topic may contain anything.
"""

import json
import re
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kaspar.spark.kafka_settings import InvalidOption

_SIMPLE: dict[str, Callable[[], DataType]] = {
    "boolean": BooleanType,
    "tinyint": ByteType,
    "byte": ByteType,
    "smallint": ShortType,
    "short": ShortType,
    "int": IntegerType,
    "integer": IntegerType,
    "bigint": LongType,
    "long": LongType,
    "float": FloatType,
    "real": FloatType,
    "double": DoubleType,
    "date": DateType,
    "timestamp": TimestampType,
    "timestamp_ltz": TimestampType,
    "timestamp_ntz": TimestampNTZType,
    "string": StringType,
    "binary": BinaryType,
}
_TOKEN = re.compile(r"\s*(?:(\w+)|`((?:[^`]|``)+)`|'((?:[^'\\]|\\.)*)'|([<>(),:]))")
_DECIMAL_DEFAULTS = (10, 0)  # Spark's


def data_type_of(text: str) -> DataType:
    """The type of a DDL string or of a schema's JSON. Raises InvalidOption."""
    if text.lstrip().startswith("{"):
        try:
            return nullable(StructType.fromJson(json.loads(text)))
        except Exception as error:  # pyspark raises KeyError, TypeError and its own
            raise InvalidOption(f"The schema is not the JSON of a Spark schema ({error}): {text}") from error
    return _Ddl(text).read()


def nullable(data_type: DataType) -> DataType:
    """The same type with nulls allowed everywhere."""
    match data_type:
        case StructType():
            return StructType([StructField(field.name, nullable(field.dataType)) for field in data_type.fields])
        case ArrayType():
            return ArrayType(nullable(data_type.elementType))
        case MapType():
            return MapType(nullable(data_type.keyType), nullable(data_type.valueType))
    return data_type


def arrow_type_of(data_type: DataType) -> pa.DataType:
    """The Arrow type that Spark expects for a column of this type from a Python data source."""
    return to_arrow_type(data_type, timezone="UTC")


class _Ddl:
    """A DDL string, parsed from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._at = 0

    def read(self) -> DataType:
        if len(self._tokens) > 1 and self._tokens[1][1] == "<":
            data_type = self._type()
        else:
            data_type = self._fields(until="")
        if self._peek() != "":
            raise self._wrong(f"unexpected {self._peek()!r}")
        return data_type

    def _split(self) -> list[tuple[str, str]]:
        """The words, quoted names, comments and signs of the string, each with its kind; the last is an empty sign."""
        tokens, position, end = [], 0, len(self._text.rstrip())
        while position < end:
            found = _TOKEN.match(self._text, position)
            if found is None:
                raise self._wrong(f"{self._text[position:].strip()[:20]!r} is not valid")
            word, quoted, comment, sign = found.groups()
            if word is not None:
                tokens.append(("word", word))
            elif quoted is not None:
                tokens.append(("name", quoted.replace("``", "`")))
            elif comment is not None:
                tokens.append(("comment", comment))
            else:
                tokens.append(("sign", sign))
            position = found.end()
        return [*tokens, ("sign", "")]

    def _fields(self, until: str) -> StructType:
        fields = [self._field()]
        while self._skip(","):
            fields.append(self._field())
        if self._peek() != until:
            raise self._wrong(f"a comma or {until or 'the end'!r} is missing before {self._peek()!r}")
        names = [field.name for field in fields]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise self._wrong(f"duplicate column {twice.pop()!r}")
        return StructType(fields)

    def _field(self) -> StructField:
        kind, name = self._next()
        if kind not in ("word", "name"):
            raise self._wrong(f"a column's name is missing before {name or 'the end'!r}")
        self._skip(":")
        field = StructField(name, self._type())
        if self._skip("not"):
            self._expect("null")
        if self._skip("comment"):
            self._next()
        return field

    def _type(self) -> DataType:
        kind, word = self._next()
        name = word.lower()
        if kind == "word" and name in _SIMPLE:
            return _SIMPLE[name]()
        match name if kind == "word" else "":
            case "decimal" | "dec" | "numeric":
                return self._decimal()
            case "char" | "character" | "varchar":
                self._numbers()
                return StringType()
            case "array":
                self._expect("<")
                array = ArrayType(self._type())
                self._expect(">")
                return array
            case "map":
                self._expect("<")
                key = self._type()
                self._expect(",")
                entries = MapType(key, self._type())
                self._expect(">")
                return entries
            case "struct":
                self._expect("<")
                struct = self._fields(until=">")
                self._expect(">")
                return struct
        raise self._wrong(f"{word or 'the end'!r} is not a supported type")

    def _decimal(self) -> DataType:
        given = self._numbers()
        if len(given) > len(_DECIMAL_DEFAULTS):
            raise self._wrong("a decimal has only a precision and a scale")
        precision, scale = (*given, *_DECIMAL_DEFAULTS[len(given) :])
        if not (0 < precision <= 38 and scale <= precision):
            raise self._wrong(f"decimal({precision},{scale}) must have 1 to 38 digits, and a scale of at most that")
        return DecimalType(precision, scale)

    def _numbers(self) -> list[int]:
        """The numbers in parentheses after a type's name, if any."""
        numbers: list[int] = []
        if self._skip("("):
            while True:
                kind, word = self._next()
                if kind != "word" or not word.isdigit():
                    raise self._wrong(f"a number was expected, not {word!r}")
                numbers.append(int(word))
                if not self._skip(","):
                    break
            self._expect(")")
        return numbers

    def _peek(self) -> str:
        return self._tokens[self._at][1]

    def _next(self) -> tuple[str, str]:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _skip(self, word: str) -> bool:
        kind, found = self._tokens[self._at]
        if kind in ("word", "sign") and found.lower() == word:
            self._next()
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._skip(word):
            raise self._wrong(f"{word!r} is missing before {self._peek() or 'the end'!r}")

    def _wrong(self, what: str) -> InvalidOption:
        return InvalidOption(f"The schema is not a Spark DDL string ({what}): {self._text}")
