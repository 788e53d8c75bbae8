"""The options that declare in which format a column is written: `<field>.format` and where its schema comes from.

A sink writes registered schemas only: without a registry a column is bytes or a string, which the query encodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.spark.formats.declared import Field, file_content, version_of
from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.registry_options import URL, registry_of

if TYPE_CHECKING:
    from kaspar.serialization.registry_config import RegistryConfig

_FORMATS: Final = ("avro", "json", "protobuf")
_PLAIN: Final = ("bytes", "string")
_BOOLEANS: Final = {"true": True, "false": False}
_STRATEGY: Final = "TopicNameStrategy"  # Confluent's default


@dataclass(frozen=True, slots=True)
class EncodingOptions:
    """The encoding of one field, with files already read."""

    field: Field
    name: str
    registry: "RegistryConfig"
    schema: str | None = None
    message: str | None = None
    subject: str | None = None
    version: int | None = None
    strategy: str = _STRATEGY
    auto_register: bool = True
    use_latest: bool = False
    normalize: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str], field: Field) -> "EncodingOptions | None":
        """The encoding that the options of a write declare; None if the column is written as it is. Option names are
        case-insensitive. Raises InvalidOption."""
        given = {name.lower(): text.strip() for name, text in options.items()}
        name = given.get(f"{field}.format", "bytes").lower()
        if name in _PLAIN:
            return None
        if name not in _FORMATS:
            known = ", ".join((*_PLAIN, *_FORMATS))
            raise InvalidOption(f"Option '{field}.format' must be one of {known}, not {name!r}.")
        registry = registry_of(given)
        if registry is None:
            raise InvalidOption(
                f"Option '{field}.format' is {name}, so option '{URL}' must be given: columns are encoded by "
                "registered schemas. Without a registry encode them in the query, for example with to_json."
            )
        texts = {option: given.get(f"{field}.{option}") or None for option in ("schema", "message", "subject")}
        if texts["message"] is not None and name != "protobuf":
            raise InvalidOption(f"Option '{field}.message' has no effect while '{field}.format' is {name}.")
        return cls(
            field,
            name,
            registry,
            schema=_text(texts["schema"], f"{field}.schema"),
            message=texts["message"],
            subject=texts["subject"],
            version=version_of(given.get(f"{field}.schema.version"), f"{field}.schema.version"),
            strategy=given.get(f"{field}.subject.name.strategy") or _STRATEGY,
            auto_register=_boolean(given, "auto.register.schemas", default=True),
            use_latest=_boolean(given, "use.latest.version", default=False),
            normalize=_boolean(given, "normalize.schemas", default=False),
        )


def _boolean(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in _BOOLEANS:
        raise InvalidOption(f"Option '{name}' must be true or false, not {text!r}.")
    return _BOOLEANS[text]


def _text(given: str | None, option: str) -> str | None:
    """The schema itself, or the content of the file that the option names."""
    if given is None or given.startswith(("{", "[", '"')) or ("\n" in given or ";" in given):
        return given
    if given.isidentifier() and not Path(given).exists():
        return f'"{given}"'  # a primitive type of Avro
    return file_content(given, option).decode("utf-8", "replace")
