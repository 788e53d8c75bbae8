"""Each rule of compatibility, by a table: the differences between two schemas, and whether they are compatible."""

import json
from typing import Any

import pytest

from kaspar.schemas.json_schema import JsonSchema, incompatibilities, parse
from kaspar.schemas.json_schema.compatibility import compare
from kaspar.schemas.json_schema.compatibility.differences import LENIENT, STRICT, Kind
from kaspar.schemas.json_schema.drafts import Draft
from tests.unit.schemas.json_schema.changes import ALL_DRAFTS, BEFORE_2019_09, SINCE_2019_09, Change


def _parsed(schema: Any, draft: Draft) -> JsonSchema:
    if isinstance(schema, dict):
        schema = {"$schema": draft.meta_schema, **schema}
    return parse(json.dumps(schema), {})


def _cases(changes: list[Change], *drafts: Draft) -> pytest.MarkDecorator:
    ids = [f"{draft.name}: {change.what}" for draft in drafts for change in changes]
    return pytest.mark.parametrize(
        ("draft", "change"), [(draft, change) for draft in drafts for change in changes], ids=ids
    )


@_cases(ALL_DRAFTS, Draft.DRAFT_7, Draft.DRAFT_2020_12)
def test_differences(draft: Draft, change: Change) -> None:
    _check(draft, change)


@_cases(BEFORE_2019_09, Draft.DRAFT_6, Draft.DRAFT_7)
def test_differences_before_2019_09(draft: Draft, change: Change) -> None:
    _check(draft, change)


@_cases(SINCE_2019_09, Draft.DRAFT_2020_12)
def test_differences_since_2019_09(draft: Draft, change: Change) -> None:
    _check(draft, change)


def _check(draft: Draft, change: Change) -> None:
    before, after = _parsed(change.before, draft), _parsed(change.after, draft)
    found = compare(before.root, after.root)
    assert tuple(f"{difference.kind.name} {difference.json_path}" for difference in found) == change.differences
    for lenient, accepted in ((False, STRICT), (True, LENIENT)):
        refused = [name for name in change.differences if Kind[name.split()[0]] not in accepted]
        messages = incompatibilities(after, before, lenient=lenient)
        assert [message.split('"')[1] for message in messages] == [name.split()[0] for name in refused]


def test_every_kind_of_difference_is_in_the_table() -> None:
    changes = (*ALL_DRAFTS, *BEFORE_2019_09, *SINCE_2019_09)
    assert {name.split()[0] for change in changes for name in change.differences} == {kind.name for kind in Kind}
