"""The options of Java's Krb5LoginModule in `sasl.jaas.config`: which keys or tickets are used, and for which service.

com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="/etc/kafka/kafka.keytab"
    principal="kafka/kafka1.example.com@EXAMPLE.COM";
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.security.jaas import LoginModule

MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
_SERVICE_NAME: Final = "sasl.kerberos.service.name"


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """`keytab` and `ticket_cache` have Kerberos's syntax (`FILE:/path`). They are empty for Kerberos's defaults, and
    None if they are not used. `principal` may be empty if there is only a ticket cache.
    """

    principal: str
    keytab: str | None
    ticket_cache: str | None


def kerberos_login(module: LoginModule) -> KerberosLogin:
    """Raises InvalidSetting."""
    if module.name != MODULE:
        raise InvalidSetting(f"GSSAPI needs {MODULE} in sasl.jaas.config, not {module.name}")
    options = module.options
    keytab = _file(options, "keyTab") if _is_on(options, "useKeyTab") else None
    ticket_cache = _file(options, "ticketCache") if _is_on(options, "useTicketCache") else None
    principal = options.get("principal", "")
    if keytab is None and ticket_cache is None:
        raise InvalidSetting(
            "Krb5LoginModule needs useKeyTab=true with keyTab and principal, or useTicketCache=true: passwords "
            "cannot be prompted for"
        )
    if keytab is not None and principal in ("", "*"):
        raise InvalidSetting('Krb5LoginModule needs principal="..." with useKeyTab=true')
    return KerberosLogin(principal, keytab, ticket_cache)


def service_name(properties: Mapping[str, str], module: LoginModule) -> str:
    """The first component of the brokers' principals, for which clients request tickets. Raises InvalidSetting."""
    given = properties.get(_SERVICE_NAME, "").strip()
    of_module = module.options.get("serviceName", "")
    if given and of_module and given != of_module:
        raise InvalidSetting(f"Conflicting serviceName values found in JAAS and Kafka configs: {of_module} and {given}")
    if not given and not of_module:
        raise InvalidSetting(f"No serviceName defined in either JAAS or Kafka config: set {_SERVICE_NAME}")
    return given or of_module


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


def _file(options: Mapping[str, str], name: str) -> str:
    """The option in Kerberos's syntax, in which a path is `FILE:/path`. Java also accepts `/path` and `file:/path`."""
    text = options.get(name, "")
    if text[:5].lower() == "file:":
        text = text[5:]
    if not text or ":" in text.partition("/")[0]:
        return text
    return f"FILE:{text}"
