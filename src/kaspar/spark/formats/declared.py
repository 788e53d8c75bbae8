"""The options that declare a format, and the decoder that belongs to them.

Files that an option names are read where the options are parsed, on the driver: executors need not have them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from kaspar.base.errors import InvalidSetting
from kaspar.spark.formats.decoder import Decoder
from kaspar.spark.formats.plain import BytesDecoder, StringDecoder

Field = Literal["key", "value"]

FORMATS = ("bytes", "string")


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """What was declared for one field: `<field>.format` and what belongs to it."""

    name: str = "bytes"
    schema: str | None = None  # <field>.schema

    @classmethod
    def of(cls, options: Mapping[str, str], field: Field) -> "FormatOptions":
        """From the options of a query, whose names are in any case. InvalidSetting with a sentence."""
        given = {name.lower(): text for name, text in options.items()}
        name = given.get(f"{field}.format", "bytes").lower()
        if name not in FORMATS:
            raise InvalidSetting(f"{field}.format is {name!r}, but it must be one of {', '.join(FORMATS)}.")
        return cls(name, given.get(f"{field}.schema"))


class DeclaredFormats(Protocol):
    """As much of ReadOptions as formats need."""

    @property
    def key_format(self) -> FormatOptions: ...
    @property
    def value_format(self) -> FormatOptions: ...


def decoder_of(options: DeclaredFormats, field: Field) -> Decoder:
    """The decoder of a field. InvalidSetting with a sentence if its schema cannot be used."""
    declared = options.key_format if field == "key" else options.value_format
    return StringDecoder() if declared.name == "string" else BytesDecoder()
