"""JAAS text: the same texts as Kafka's JaasConfig takes, and errors that repeat no secret."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.security.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_options_may_be_quoted_in_two_ways_or_not_at_all() -> None:
    login = parse_jaas(f"""{PLAIN} required a="x y" b='it"s' c=word-1.2_$;""")
    assert login.options == {"a": "x y", "b": 'it"s', "c": "word-1.2_$"}
    assert login.name == PLAIN


def test_comments_and_line_breaks_are_skipped() -> None:
    text = f'{PLAIN} // who\n required /* a = b; */\n\tusername="u"\n  password="p"\n;\n'
    assert parse_jaas(text).options == {"username": "u", "password": "p"}


@pytest.mark.parametrize("value", ["plain", 'quo"ted', "back\\slash", "semi;colon = and # more", "ü€"])
def test_a_quoted_value_is_read_back(value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_jaas(f'{PLAIN} required password="{quoted}";').options == {"password": value}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Login module not specified in JAAS config"),
        (f"{PLAIN}", "Login module control flag not specified in JAAS config"),
        (f"{PLAIN} hunter2;", "Invalid login module control flag in JAAS config"),
        (f"{PLAIN} username=u;", "Invalid login module control flag 'username' in JAAS config"),
        (f"{PLAIN} required password=my;hunter2 ;", "Invalid login module control flag in JAAS config"),
        (f"{PLAIN} required password=my hunter2 ;", "Value not specified in JAAS config"),
        (f'{PLAIN} required password="hunter2"', "JAAS config entry not terminated by semi-colon"),
        (f"{PLAIN} required password;", "Value not specified for key 'password' in JAAS config"),
        (f'{PLAIN} required "hunter2" = ;', "Value not specified in JAAS config"),
        (f"{PLAIN} required; {PLAIN} required;", "JAAS config property contains 2 login modules, should be 1 module"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(text: str, sentence: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        parse_jaas(text)
    assert str(refused.value) == sentence


def test_options_are_not_shown() -> None:
    assert "hunter2" not in repr(parse_jaas(f"{PLAIN} required password=hunter2;"))
