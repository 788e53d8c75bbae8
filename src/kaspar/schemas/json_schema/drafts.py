"""The drafts of JSON Schema. In Confluent's registry a schema without a known `$schema` is draft 7."""

from enum import Enum
from typing import Final

from kaspar.schemas.json_schema.text import Json


class Draft(Enum):
    DRAFT_4 = "json-schema.org/draft-04/schema"
    DRAFT_6 = "json-schema.org/draft-06/schema"
    DRAFT_7 = "json-schema.org/draft-07/schema"
    DRAFT_2019_09 = "json-schema.org/draft/2019-09/schema"
    DRAFT_2020_12 = "json-schema.org/draft/2020-12/schema"

    @property
    def modern(self) -> bool:
        """Since 2019-09 other keywords beside `$ref` apply, and several keywords have new names."""
        return self in (Draft.DRAFT_2019_09, Draft.DRAFT_2020_12)

    @property
    def meta_schema(self) -> str:
        """The value of `$schema`."""
        return f"https://{self.value}" if self.modern else f"http://{self.value}#"

    @property
    def id_keyword(self) -> str:
        return "id" if self is Draft.DRAFT_4 else "$id"


def draft_of(document: Json, *, default: Draft = Draft.DRAFT_7) -> Draft:
    if not isinstance(document, dict) or not isinstance(uri := document.get("$schema"), str):
        return default
    return _BY_URI.get(uri.removesuffix("#").removeprefix("https://").removeprefix("http://"), default)


_BY_URI: Final = {draft.value: draft for draft in Draft}
