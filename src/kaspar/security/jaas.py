"""JAAS text as in `sasl.jaas.config`: one login module, its control flag, and its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

A JAAS file has named sections with such modules: `Client { ...; };`.

The syntax is that of Kafka's JaasConfig. Errors contain only well-known words of the text, because a password with
wrong quotes may be parsed in place of another word.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kaspar.base.errors import InvalidSetting

_TOKEN = re.compile(
    r"""\s+ | /\*.*?\*/ | /[^\n]*            # blanks and comments
    | (?P<quoted>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    | (?P<word>[A-Za-z0-9_.$\-\u00a0-\U0010ffff]+)
    | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "v": "\v"}
_KNOWN_OPTIONS = ("username", "password", "tokenauth", "serviceName", "keyTab", "principal")
_CONTROL_FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")


@dataclass(frozen=True, slots=True)
class LoginModule:
    """`options` contain secrets, so they are not shown."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule:
    """The login module of a JAAS text. Raises InvalidSetting."""
    entries = parse_jaas_entries(text)
    if len(entries) != 1:
        raise InvalidSetting(f"JAAS config property contains {len(entries)} login modules, should be 1 module")
    return entries[0]


def parse_jaas_entries(text: str) -> list[LoginModule]:
    tokens = _tokens(text)
    entries = []
    for kind, name in tokens:
        if kind == "mark":
            raise InvalidSetting("Login module not specified in JAAS config")
        entries.append(_entry(name, tokens))
    if not entries:
        raise InvalidSetting("Login module not specified in JAAS config")
    return entries


def parse_jaas_file(text: str) -> dict[str, list[LoginModule]]:
    """The login modules of each section. Raises InvalidSetting."""
    tokens = _tokens(text)
    sections: dict[str, list[LoginModule]] = {}
    for kind, section in tokens:
        if kind == "mark" or next(tokens, None) != ("mark", "{"):
            raise InvalidSetting("a section of a JAAS file has the form NAME { MODULE FLAG OPTIONS; };")
        modules = sections.setdefault(section, [])
        for kind, name in tokens:
            if (kind, name) == ("mark", "}"):
                break
            if kind == "mark":
                raise InvalidSetting("Login module not specified in JAAS config")
            modules.append(_entry(name, tokens))
        if next(tokens, None) != ("mark", ";"):
            raise InvalidSetting("a section of the JAAS file does not end with '};'")
    return sections


def _entry(name: str, tokens: Iterator[tuple[str, str]]) -> LoginModule:
    kind, flag = next(tokens, ("end", ""))
    if kind == "end":
        raise InvalidSetting("Login module control flag not specified in JAAS config")
    if flag.upper() not in _CONTROL_FLAGS:
        shown = f" '{flag}'" if flag in _KNOWN_OPTIONS else ""
        raise InvalidSetting(f"Invalid login module control flag{shown} in JAAS config")
    options: dict[str, str] = {}
    for kind, key in tokens:
        if kind == "mark" and key == ";":
            return LoginModule(name, options)
        equals, value = next(tokens, ("end", "")), next(tokens, ("end", ""))
        if kind == "mark" or equals != ("mark", "=") or value[0] not in ("quoted", "word"):
            shown = f" for key '{key}'" if key in _KNOWN_OPTIONS else ""
            raise InvalidSetting(f"Value not specified{shown} in JAAS config")
        options[key] = value[1]
    raise InvalidSetting("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "quoted":
            yield kind, re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), match["quoted"][1:-1])
        elif kind is not None:
            yield kind, match[0]
