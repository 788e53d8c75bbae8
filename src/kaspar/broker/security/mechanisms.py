"""The SASL mechanisms of a listener, from its settings, with the source of credentials for each."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.broker.security.credentials import Credentials
from kaspar.config import BrokerConfig, BrokerSettings
from kaspar.config.kinds import LIST
from kaspar.security.jaas import LoginModule, parse_jaas
from kaspar.security.krb5_login_module import kerberos_login
from kaspar.security.plain import PlainServer, checker_of, users_of
from kaspar.security.sasl import GSSAPI, OAUTHBEARER, PLAIN, SaslServer
from kaspar.security.scram import HASHES, ScramServer

NewServer = Callable[[], SaslServer]
_RULES: Final = BrokerConfig.declared["sasl.kerberos.principal.to.local.rules"]


def enabled_mechanisms(settings: BrokerSettings, listener: str) -> tuple[str, ...]:
    names = LIST.parse(settings.listener_values(listener).get("sasl.enabled.mechanisms", GSSAPI))
    return tuple(dict.fromkeys(name for name in names if name))


def new_servers(settings: BrokerSettings, listener: str, credentials: Credentials) -> Mapping[str, NewServer]:
    """The factories of the broker's side of an exchange, by enabled mechanism. Raises InvalidSetting."""
    names = enabled_mechanisms(settings, listener)
    if not names:
        raise InvalidSetting("sasl.enabled.mechanisms is empty")
    return {name: _new_server(settings, listener, name, credentials) for name in names}


def login_module(settings: BrokerSettings, listener: str, mechanism: str) -> LoginModule:
    """The `sasl.jaas.config` for this mechanism of this listener. Raises InvalidSetting."""
    text = settings.listener_values(listener, mechanism).get("sasl.jaas.config")
    if not text:
        raise InvalidSetting(
            f"{mechanism} needs a login module: set listener.name.{listener.lower()}.{mechanism.lower()}"
            ".sasl.jaas.config"
        )
    return parse_jaas(text)


def _new_server(settings: BrokerSettings, listener: str, mechanism: str, credentials: Credentials) -> NewServer:
    if mechanism == PLAIN:
        check = checker_of(users_of(login_module(settings, listener, mechanism)))
        return partial(PlainServer, check)
    if mechanism in HASHES:
        return partial(ScramServer, mechanism, partial(credentials.scram, mechanism))
    if mechanism == OAUTHBEARER:
        from kaspar.security.jwks import TokenValidator
        from kaspar.security.oauthbearer import OAuthBearerServer

        return partial(OAuthBearerServer, TokenValidator(settings.listener_values(listener, mechanism)))
    if mechanism == GSSAPI:
        return _new_gssapi_server(settings, listener)
    supported = ", ".join((PLAIN, *HASHES, OAUTHBEARER, GSSAPI))
    raise InvalidSetting(f"sasl.enabled.mechanisms contains {mechanism}; supported: {supported}")


def _new_gssapi_server(settings: BrokerSettings, listener: str) -> NewServer:
    login = kerberos_login(login_module(settings, listener, GSSAPI))
    from kaspar.security.kerberos import Acceptor

    rules = settings.listener_values(listener, GSSAPI).get(_RULES.name)
    return Acceptor(login, LIST.parse(rules) if rules else _RULES.default).new_server
