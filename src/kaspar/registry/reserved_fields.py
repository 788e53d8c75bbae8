"""Reserved fields: names that the metadata of a schema reserves, checked if the config has `validateFields`."""

from collections.abc import Collection
from typing import Final

from kaspar.registry.entities import Metadata

RESERVED: Final = "confluent:reserved"
"""The metadata property: names separated by commas."""


def reserved_field_errors(fields: Collection[str], metadata: Metadata | None, previous: Metadata | None) -> list[str]:
    """The error messages, in Confluent's words. `fields` are the top-level fields of the schema."""
    reserved = reserved_fields(metadata)
    removed = [name for name in reserved_fields(previous) if name not in reserved]
    return [
        *(
            f"The new schema has reserved field {name} removed from its metadata which is present in the old schema's "
            "metadata."
            for name in removed
        ),
        *(
            f"The new schema has field that conflicts with the reserved field {name}."
            for name in reserved
            if name in fields
        ),
    ]


def reserved_fields(metadata: Metadata | None) -> list[str]:
    names = ((metadata.properties if metadata is not None else None) or {}).get(RESERVED, "")
    return list(dict.fromkeys(name for each in names.split(",") if (name := each.strip())))
