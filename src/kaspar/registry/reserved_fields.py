"""Reserved fields: names that the metadata of a schema keeps free, checked where the config has `validateFields`."""

from collections.abc import Collection
from typing import Final

from kaspar.registry.entities import Metadata

RESERVED: Final = "confluent:reserved"
"""The property of the metadata: names with commas between them."""


def reserved_field_errors(fields: Collection[str], metadata: Metadata | None, previous: Metadata | None) -> list[str]:
    """In Confluent's words. `fields` are those at the top of the schema."""
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
