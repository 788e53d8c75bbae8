"""Translates `security.protocol`, `ssl.*` and `sasl.*` of Java's clients to librdkafka's security settings.

Key stores are read here, and librdkafka receives PEM in memory. A connection is never less secure than the properties
require: what librdkafka does not support is an error.
"""

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from kaspar.base.errors import InvalidSetting
from kaspar.security import cipher_suites
from kaspar.security.client import PROTOCOLS, login_module
from kaspar.security.jaas import LoginModule
from kaspar.security.key_stores import load_key_store, load_trust_store
from kaspar.security.krb5_login_module import kerberos_login, service_name
from kaspar.security.oauthbearer import unsecured_token
from kaspar.security.sasl import GSSAPI, OAUTHBEARER
from kaspar.security.tls import DEFAULT_PROTOCOLS
from kaspar.tools.librdkafka.values import choice, invalid, listed

Settings = dict[str, object]
Token = tuple[str, float, str, dict[str, str]]
"""What librdkafka's `oauth_cb` returns: the token, its expiry time, the principal's name, and the SASL extensions."""

_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_UNKNOWN_LIFETIME_S: Final = 3600.0


def security_settings(properties: Mapping[str, str]) -> tuple[Settings, tuple[str, ...]]:
    """The settings, which contain secrets, and a warning for each property that has no effect. Raises
    InvalidSetting.
    """
    protocol = choice("security.protocol", properties.get("security.protocol", PROTOCOLS[0]), PROTOCOLS, any_case=True)
    settings: Settings = {"security.protocol": protocol.lower()}
    warnings: list[str] = []
    if protocol.endswith("SSL"):
        settings.update(_tls(properties, warnings))
    if protocol.startswith("SASL"):
        settings.update(_sasl(properties))
    return settings, tuple(warnings)


# --- TLS --------------------------------------------------------------------------------------------------------------


def _tls(properties: Mapping[str, str], warnings: list[str]) -> Settings:
    settings: Settings = {}
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("", "https"):
        raise invalid("ssl.endpoint.identification.algorithm", algorithm, "https, or nothing")
    settings["ssl.endpoint.identification.algorithm"] = algorithm or "none"
    if (trusted := load_trust_store(properties)) is not None:
        if not trusted:
            raise InvalidSetting("the trust store has no certificate")
        settings["ssl.ca.pem"] = "".join(map(ssl.DER_cert_to_PEM_cert, trusted))
    if (pair := load_key_store(properties)) is not None:
        settings["ssl.key.pem"] = pair.key.decode()
        settings["ssl.certificate.pem"] = b"".join(pair.chain).decode()
    if (suites := cipher_suites.choose(listed(properties, "ssl.cipher.suites"))) is not None and suites.openssl:
        settings["ssl.cipher.suites"] = suites.openssl
    _check_versions(properties, warnings)
    return settings


def _check_versions(properties: Mapping[str, str], warnings: list[str]) -> None:
    known = DEFAULT_PROTOCOLS.split(",")
    versions = listed(properties, "ssl.enabled.protocols") or known
    if unknown := [each for each in versions if each not in known]:
        raise InvalidSetting(f"ssl.enabled.protocols contains {', '.join(unknown)}: TLSv1.2 and TLSv1.3 are known")
    if versions == ["TLSv1.3"]:
        raise InvalidSetting("ssl.enabled.protocols cannot be TLSv1.3 alone: librdkafka always accepts TLSv1.2, too")
    if versions == ["TLSv1.2"]:
        warnings.append("ssl.enabled.protocols has no effect: librdkafka always offers TLSv1.3 as well.")


# --- SASL -------------------------------------------------------------------------------------------------------------


def _sasl(properties: Mapping[str, str]) -> Settings:
    mechanism = properties.get("sasl.mechanism", GSSAPI).strip()
    login = login_module(mechanism, properties)
    settings: Settings = {"sasl.mechanism": mechanism}
    if mechanism == GSSAPI:
        return {**settings, **_kerberos(properties, login)}
    if mechanism == OAUTHBEARER:
        return {**settings, **_oauthbearer(properties, login)}
    if login.options.get("tokenauth", "").lower() == "true":
        raise InvalidSetting("tokenauth=true of sasl.jaas.config: librdkafka cannot log in with a delegation token")
    return {**settings, "sasl.username": login.options["username"], "sasl.password": login.options["password"]}


def _kerberos(properties: Mapping[str, str], module: LoginModule) -> Settings:
    """With a keytab, librdkafka runs kinit. Without one, it uses the tickets in the credentials cache."""
    login = kerberos_login(module)
    settings: Settings = {"sasl.kerberos.service.name": service_name(properties, module)}
    if login.principal:
        settings["sasl.kerberos.principal"] = login.principal
    if not login.keytab:
        settings["sasl.kerberos.min.time.before.relogin"] = 0
        return settings
    settings["sasl.kerberos.keytab"] = login.keytab.removeprefix("FILE:")
    if (period := properties.get("sasl.kerberos.min.time.before.relogin")) is not None:
        settings["sasl.kerberos.min.time.before.relogin"] = (
            max(1, int(period)) if period.strip().isdecimal() else 60_000
        )
    return settings


def _oauthbearer(properties: Mapping[str, str], login: LoginModule) -> Settings:
    extensions = {
        name.partition("_")[2]: value
        for name, value in login.options.items()
        if name.startswith(("extension_", "unsecuredLoginExtension_"))
    }
    url = properties.get(_TOKEN_URL, "").strip()
    if not url:
        unsecured_token(login.options)  # fails now if an option is missing
        return {"oauth_cb": _token_source(lambda: unsecured_token(login.options), extensions)}
    parts = urlsplit(url)
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        _read_token(path)
        return {"oauth_cb": _token_source(lambda: _read_token(path), extensions)}
    if parts.scheme in ("http", "https"):
        return _token_server(properties, login, url, extensions)
    raise invalid(_TOKEN_URL, url, "the URL of a file or of a token server is expected")


def _token_server(
    properties: Mapping[str, str], login: LoginModule, url: str, extensions: Mapping[str, str]
) -> Settings:
    """librdkafka fetches tokens itself. Since Kafka 4.1 the credentials are among the properties."""

    def credential(name: str, of_module: str) -> str:
        return properties.get(f"sasl.oauthbearer.{name}") or login.options.get(of_module, "")

    settings: Settings = {
        "sasl.oauthbearer.method": "oidc",
        _TOKEN_URL: url,
        "sasl.oauthbearer.client.id": credential("client.credentials.client.id", "clientId"),
        "sasl.oauthbearer.client.secret": credential("client.credentials.client.secret", "clientSecret"),
    }
    if not all(settings.values()):
        raise InvalidSetting(
            f"{_TOKEN_URL} needs sasl.oauthbearer.client.credentials.client.id and .client.secret as well"
        )
    if scope := credential("scope", "scope"):
        settings["sasl.oauthbearer.scope"] = scope
    if extensions:
        settings["sasl.oauthbearer.extensions"] = ",".join(f"{name}={value}" for name, value in extensions.items())
    return settings


def _read_token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise InvalidSetting(f"the token in {path} cannot be read") from None


def _token_source(new_token: Callable[[], str], extensions: dict[str, str]) -> Callable[[str], Token]:
    def token(config: str) -> Token:
        del config
        text = new_token()
        claims = _claims(text)
        expires = claims.get("exp")
        expires_s = float(expires) if isinstance(expires, int | float) else time.time() + _UNKNOWN_LIFETIME_S
        return text, expires_s, str(claims.get("sub", "")), extensions

    return token


def _claims(token: str) -> Mapping[str, object]:
    """The claims of a JWT, unverified, because brokers verify it. Empty for any other kind of token."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
