"""The name of a principal from its certificate: the subject in Java's form, then `ssl.principal.mapping.rules`.

A subject is written as in RFC 2253, the most specific part first. Attributes that RFC 2253 does not name are written as
their OID and the hexadecimal DER of their value, as in X500Principal.getName.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.security import der

_KEYWORDS: Final = {
    NameOID.COMMON_NAME: "CN",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.COUNTRY_NAME: "C",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_RULES: Final = re.compile(rf"\s*({_RULE})\s*(?:,\s*|$)")


class NoMatchingRule(KasparError):
    """No rule applies to a certificate's subject. The connection is closed."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule; DEFAULT if `pattern` is None."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = self.pattern.sub(self._replaced, name)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped

    def _replaced(self, match: re.Match[str]) -> str:
        """Expand the replacement, in which $1 is the first group. A number without a group is literal, as in Kafka."""
        groups = match.re.groups

        def one(reference: re.Match[str]) -> str:
            if reference[1] is not None:
                return reference[1]  # an escaped character
            digits = reference[2]
            used = next((n for n in range(len(digits), 0, -1) if int(digits[:n]) <= groups), 0)
            return (match[int(digits[:used])] or "") + digits[used:] if used else reference[0]

        return re.sub(r"\\(.)|\$(\d+)", one, self.replacement)


class PrincipalMapping:
    """`ssl.principal.mapping.rules`: the first rule that applies decides."""

    def __init__(self, rules: str) -> None:
        """Raises InvalidSetting."""
        self._text = rules
        self._rules = _parse(rules)

    def name_of(self, subject: str) -> str:
        for rule in self._rules:
            name = rule.apply(subject)
            if name is not None:
                return name
        raise NoMatchingRule(f"no rule of ssl.principal.mapping.rules applies to {subject}")


def _parse(text: str) -> Sequence[_Rule]:
    rules = []
    for match in _RULES.finditer(text.strip()):
        _, default, pattern, replacement, case, rest = match.groups()
        if default is not None:
            rules.append(_Rule())
        elif pattern is not None:
            try:
                rules.append(_Rule(re.compile(_python_pattern(pattern)), replacement, case))
            except re.error as problem:
                raise InvalidSetting(f"ssl.principal.mapping.rules has an invalid pattern: {problem}") from None
        elif rest:
            raise InvalidSetting(f"ssl.principal.mapping.rules has an invalid rule: {rest}")
    return rules


def _python_pattern(java: str) -> str:
    """Convert Java's syntax. Of what is used in rules, only named groups differ in Python."""
    return re.sub(r"\(\?<([A-Za-z])", r"(?P<\1", java)


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate, which is given in DER."""
    return name_text(x509.load_der_x509_certificate(certificate).subject)


def name_text(name: x509.Name) -> str:
    return ",".join("+".join(map(_attribute_text, part)) for part in reversed(name.rdns))


def _attribute_text(attribute: x509.NameAttribute[str | bytes]) -> str:
    keyword = _KEYWORDS.get(attribute.oid)
    if keyword is None or isinstance(attribute.value, bytes):
        return f"{attribute.oid.dotted_string}=#{_value_der(attribute).hex()}"
    return f"{keyword}={_escaped(attribute.value)}"


def _value_der(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """The value of an attribute in DER. A name is a SEQUENCE of SETs of SEQUENCEs { type, value }."""
    type_and_value = der.content(der.content(der.content(x509.Name([attribute]).public_bytes())))
    return type_and_value[der.end(type_and_value) :]


def _escaped(value: str) -> str:
    text = re.sub(r'([,=+<>#;"\\])', r"\\\1", value)
    leading = len(text) - len(text.lstrip(" "))
    trailing = len(text) - len(text.rstrip(" "))
    if leading == len(text):
        return "\\ " * len(text)
    return "\\ " * leading + text[leading : len(text) - trailing] + "\\ " * trailing
