"""The short name of a Kerberos principal by `sasl.kerberos.principal.to.local.rules`, as in Kafka's KerberosShortNamer
and KerberosRule. The first rule that applies decides:

    DEFAULT                                          the first component, in the default realm
    RULE:[n:string](regexp)s/pattern/replacement/g   for names of n components; string has the realm as $0, then $1, $2
    RULE:[...]/L or /U                               the same, in lower or upper case

A rule that can never work (because of a missing component, or a group that the pattern does not have) is refused here,
when the broker starts; in Kafka it fails the authentications to which the rule applies. An empty short name is invalid.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kaspar.base.errors import InvalidSetting, KasparError

SETTING: Final = "sasl.kerberos.principal.to.local.rules"
_NAME: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE: Final = re.compile(
    r"(?P<default>DEFAULT)"
    r"|RULE:\[(?P<components>[0-9]*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<repeat>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER: Final = re.compile(r"\$([0-9]*)")
_REFERENCE: Final = re.compile(r"\\(.)|\$(?:([0-9]+)|\{([a-zA-Z][a-zA-Z0-9]*)\})|([\\$])", re.DOTALL)


class NoShortName(KasparError):
    """No rule applies to a principal, or the result is not a short name."""


class KerberosName(NamedTuple):
    """`kafka/host@REALM`. A user has no second component."""

    service: str
    host: str | None
    realm: str


def parse_name(principal: str) -> KerberosName:
    """Raises NoShortName unless the name has one or two components and a realm."""
    match = _NAME.fullmatch(principal)
    if match is None:
        raise NoShortName(f"Malformed Kerberos name: {principal}")
    return KerberosName(*match.groups())


@dataclass(frozen=True, slots=True)
class _Rule:
    """`text` is the rule as in the settings: DEFAULT, or the rule whose parts are the other attributes."""

    text: str
    components: int = 0
    format: str = ""
    match: re.Pattern[str] | None = None
    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    repeat: bool = False
    case: str = ""

    def apply(self, parameters: Sequence[str], default_realm: str) -> str | None:
        if self.text == "DEFAULT":
            name = parameters[1] if parameters[0] == default_realm else None
        elif len(parameters) - 1 == self.components:
            name = self._mapped(_PARAMETER.sub(lambda each: parameters[int(each[1])], self.format))
        else:
            return None
        if name is None:
            return None
        if not name or "/" in name or "@" in name:
            raise NoShortName(f"Non-simple name {name!r} after auth_to_local rule {self.text}")
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _mapped(self, base: str) -> str | None:
        if self.match is not None and self.match.fullmatch(base) is None:
            return None
        if self.pattern is None:
            return base
        return self.pattern.sub(self._replaced, base, count=0 if self.repeat else 1)

    def _replaced(self, match: re.Match[str]) -> str:
        """As in Java's Matcher.appendReplacement, $1 and ${name} are groups, and a backslash escapes."""

        def one(reference: re.Match[str]) -> str:
            escaped, digits, name, _ = reference.groups()
            if escaped is not None:
                return escaped
            if name is not None:
                return match[name] or ""
            used = _group_digits(digits, match.re.groups)
            return (match[int(digits[:used])] or "") + digits[used:]

        return _REFERENCE.sub(one, self.replacement)


class ShortNames:
    """The rules of one listener."""

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        """Raises InvalidSetting."""
        self._rules = [_parse(rule) for rule in rules]
        self._default_realm = default_realm

    def name_of(self, principal: str) -> str:
        """The short name of the principal. Raises NoShortName."""
        service, host, realm = parse_name(principal)
        parameters = (realm, service) if host is None else (realm, service, host)
        for rule in self._rules:
            name = rule.apply(parameters, self._default_realm)
            if name is not None:
                return name
        raise NoShortName(f"no rule of {SETTING} applies to {principal}")


def _parse(text: str) -> _Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise InvalidSetting(f"{SETTING} has an invalid rule: {text}")
    if match["default"] is not None:
        return _Rule(text)
    if not match["components"]:
        raise InvalidSetting(f"{SETTING} has a rule without the number of components: {text}")
    rule = _Rule(
        text,
        int(match["components"]),
        match["format"],
        _compiled(text, match["match"]),
        _compiled(text, match["pattern"]),
        match["replacement"] or "",
        match["repeat"] is not None,
        match["case"] or "",
    )
    _check_format(rule)
    _check_replacement(rule)
    return rule


def _compiled(rule: str, java: str | None) -> re.Pattern[str] | None:
    if java is None:
        return None
    try:
        # Of Java's syntax that is used in rules, only named groups differ in Python.
        return re.compile(re.sub(r"\(\?<([A-Za-z])", r"(?P<\1", java))
    except re.error as problem:
        raise InvalidSetting(f"{SETTING} has an invalid pattern ({problem}): {rule}") from None


def _check_format(rule: _Rule) -> None:
    for number in _PARAMETER.findall(rule.format):
        if not number or int(number) > rule.components:
            raise InvalidSetting(f"${number} is none of $0 to ${rule.components} in the rule of {SETTING}: {rule.text}")


def _check_replacement(rule: _Rule) -> None:
    if rule.pattern is None:
        return
    for escaped, digits, name, stray in _REFERENCE.findall(rule.replacement):
        is_known = escaped or (digits and _group_digits(digits, rule.pattern.groups))
        if stray or not (is_known or name in rule.pattern.groupindex):
            raise InvalidSetting(f"the replacement names no group of the pattern in the rule of {SETTING}: {rule.text}")


def _group_digits(digits: str, groups: int) -> int:
    """How many of the digits name a group: the first, and others while there is such a group; 0 if there is none."""
    if int(digits[0]) > groups:
        return 0
    used = 1
    while used < len(digits) and int(digits[: used + 1]) <= groups:
        used += 1
    return used
