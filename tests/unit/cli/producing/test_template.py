"""Templates for test data."""

import json
import random
import uuid
from datetime import UTC, datetime

import pytest

from kaspar.cli.producing.fakers import FAKERS, Draw
from kaspar.cli.producing.template import parse_template

NOW = datetime(2026, 11, 17, 10, 0, 0, 123_000, tzinfo=UTC)
ARGUMENTS = {
    "words": "3",
    "hex": "8",
    "int": "1 6",
    "float": "1 100",
    "gauss": "10 2",
    "choice": "a b",
    "recent": "1h",
}


def _rendered(text: str, *, number: int = 0, seed: int = 7) -> str:
    return parse_template(text).render(Draw(random.Random(seed), number, NOW))


@pytest.mark.parametrize("name", FAKERS)
def test_every_faker_fits_into_a_json_string_and_is_repeated_by_its_seed(name: str) -> None:
    text = f'{{"field": "{{{{{name} {ARGUMENTS.get(name, "")}}}}}"}}'
    first = _rendered(text)
    assert json.loads(first)["field"]
    assert _rendered(text) == first


def test_seeds_differ() -> None:
    assert _rendered("{{uuid}}", seed=1) != _rendered("{{uuid}}", seed=2)
    assert uuid.UUID(_rendered("{{uuid}}")).version == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ('{"a": {"b": {}}}', '{"a": {"b": {}}}'),
        ("{{seq}}-{{ seq 100 }}-{{seq 0 5}}", "4-103-15"),
        ("{{now}}", "2026-11-17T10:00:00.123Z"),
        ("{{now ms}} {{now s}}", "1794909600123 1794909600"),
        ("{{choice 'sent back'}}", "sent back"),
        ("{{int 5 5}} {{float 1 1}} {{float 1 1 0}} {{gauss 3 0 1}}", "5 1.00 1 3.0"),
        ("{{bool 1}} {{bool 0}}", "true false"),
    ],
)
def test_template_is_rendered(text: str, expected: str) -> None:
    assert _rendered(text, number=3) == expected


def test_numbers_stay_in_their_range() -> None:
    draws = [Draw(random.Random(seed), 0, NOW) for seed in range(200)]
    dice = parse_template("{{int 1 6}}")
    assert {dice.render(draw) for draw in draws} == set("123456")
    assert all(1 <= float(parse_template("{{float 1 2}}").render(draw)) <= 2 for draw in draws)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{{nme}}", "unknown placeholder 'nme': did you mean name?"),
        ("{{zzz}}", "unknown placeholder 'zzz': valid names: bool, choice, city"),
        ("{{int 1}}", "'{{int 1}}' does not match {{int LOW HIGH}}"),
        ("{{int 6 1}}", "'{{int 6 1}}' does not match {{int LOW HIGH}}: 6 is above 1"),
        ("{{int a b}}", "'{{int a b}}' does not match {{int LOW HIGH}}: invalid literal"),
        ("{{float 0 1 -1}}", "-1 is not between 0 and 100"),
        ("{{float nan 1}}", "nan is not a JSON number"),
        ("{{gauss 0 1e999}}", "1e999 is not a JSON number"),
        ("{{words 99999999}}", "is not between 0 and 1000000"),
        ("{{hex -1}}", "is not between 0 and 1000000"),
        ("{{bool 2}}", "2 is not between 0 and 1"),
        ("{{recent 99999999w}}", "is more than a hundred years"),
        ("{{recent 999999999999w}}", "does not match {{recent DURATION"),
        ("{{name x}}", "'{{name x}}' does not match {{name}}"),
        ("{{choice}}", "does not match {{choice WORD...}}"),
        ("{{now never}}", "'never' is neither iso, ms nor s"),
        ("{{recent soon}}", "'soon' is not a duration"),
        ("a {{int 1 2", "'{{int 1 2' is not closed"),
        ("{{}}", "is not a name with arguments"),
        ("{{choice 'a}}", "is not a name with arguments: No closing quotation"),
    ],
)
def test_mistake_is_found_before_the_first_record(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_template(text)
    assert sentence in str(raised.value)
