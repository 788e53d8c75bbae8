"""How connections to ZooKeeper are protected, from the `zookeeper.ssl.*` settings of Kafka 3.9 and a login module.

Kafka reads the login from the JAAS file of its JVM, which is given in `KAFKA_OPTS`. There is no JVM here, so the same
options in that variable are parsed, and `kaspar.zookeeper.sasl.jaas.config` is an alternative without a file.
"""

import importlib.util
import re
import shlex
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.base.log import get_log
from kaspar.config.broker.zookeeper import ZooKeeperSettings
from kaspar.security.jaas import LoginModule, parse_jaas, parse_jaas_file
from kaspar.security.tls import DEFAULT_PROTOCOLS, client_context, failure_sentence

log = get_log(__name__)

JAAS_SETTING: Final = "kaspar.zookeeper.sasl.jaas.config"
LOGIN_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
_OPTIONS: Final = "KAFKA_OPTS"
_JAAS_FILE: Final = "java.security.auth.login.config"
_SECTION: Final = "zookeeper.sasl.clientconfig"
_ENABLED: Final = "zookeeper.sasl.client"
_OF_THE_JVM: Final = re.compile(r"zookeeper\.(client\.secure|ssl\..+|clientCnxnSocket)")
_SSL_NAME: Final = re.compile(r"(?<![\w./-])ssl\.")


@dataclass(frozen=True, slots=True)
class Login:
    """A user of ZooKeeper, authenticated by DIGEST-MD5. `source` says where an operator finds the setting."""

    username: str
    password: str = field(repr=False)
    source: str


@dataclass(frozen=True, slots=True)
class ZooKeeperSecurity:
    """`new_context` reads the stores again for every connection, so that they can be renewed. With `sets_acls`, nodes
    belong to the identity of the session that creates them."""

    new_context: Callable[[], ssl.SSLContext] | None = None
    login: Login | None = None
    sets_acls: bool = False


IN_THE_CLEAR: Final = ZooKeeperSecurity()


def zookeeper_security(config: ZooKeeperSettings, environment: Mapping[str, str]) -> ZooKeeperSecurity:
    """Raises KasparError with a sentence if a part of the configuration cannot be used."""
    properties = _jvm_properties(environment)
    uses_tls = config.zookeeper_ssl_client_enable
    if not uses_tls:
        _warn_of_no_tls(config, properties)
    login = _login(config, properties)
    if config.zookeeper_set_acl and login is None and not (uses_tls and config.zookeeper_ssl_keystore_location):
        raise InvalidSetting(
            "zookeeper.set.acl=true requires an identity at ZooKeeper, to which the nodes belong: a login "
            f"({JAAS_SETTING}), or TLS with zookeeper.ssl.keystore.location"
        )

    def new_context() -> ssl.SSLContext:
        try:
            return client_context(_ssl_settings(config))
        except InvalidSetting as problem:
            raise InvalidSetting(_with_our_names(str(problem))) from None

    if uses_tls:
        new_context()  # to report problems now
    return ZooKeeperSecurity(new_context if uses_tls else None, login, config.zookeeper_set_acl)


def _ssl_settings(config: ZooKeeperSettings) -> dict[str, str]:
    """The equivalent `ssl.*` settings. ZooKeeper has one password for a key store and the key in it."""
    password, location = config.zookeeper_ssl_keystore_password, config.zookeeper_ssl_keystore_location
    trusted = config.zookeeper_ssl_truststore_location
    protocols = ",".join(config.zookeeper_ssl_enabled_protocols) or config.zookeeper_ssl_protocol or DEFAULT_PROTOCOLS
    given = {
        "ssl.keystore.location": location,
        "ssl.keystore.type": config.zookeeper_ssl_keystore_type or _type_of(location),
        "ssl.keystore.password": password,
        "ssl.key.password": password,
        "ssl.truststore.location": trusted,
        "ssl.truststore.type": config.zookeeper_ssl_truststore_type or _type_of(trusted),
        "ssl.truststore.password": config.zookeeper_ssl_truststore_password,
        "ssl.enabled.protocols": protocols,
        "ssl.cipher.suites": ",".join(config.zookeeper_ssl_cipher_suites),
        "ssl.endpoint.identification.algorithm": config.zookeeper_ssl_endpoint_identification_algorithm,
    }
    return {name: value for name, value in given.items() if value is not None}


def _type_of(location: str | None) -> str:
    """The type by the file name, as in ZooKeeper. JKS and PKCS12 are distinguished by their first bytes."""
    return "PEM" if location is not None and location.lower().endswith(".pem") else "JKS"


def _with_our_names(sentence: str) -> str:
    return _SSL_NAME.sub("zookeeper.ssl.", sentence.replace("ssl.key.password", "ssl.keystore.password"))


def _warn_of_no_tls(config: ZooKeeperSettings, properties: Mapping[str, str]) -> None:
    """Report settings for TLS that have no effect, since an operator may believe that connections are encrypted."""
    if named := [name for name in properties if _OF_THE_JVM.fullmatch(name)]:
        raise InvalidSetting(
            f"{_OPTIONS} sets {', '.join(named)}, which only a JVM reads: put zookeeper.ssl.client.enable=true and the "
            "other zookeeper.ssl settings into the broker's properties file"
        )
    if config.zookeeper_ssl_keystore_location or config.zookeeper_ssl_truststore_location:
        log.warning("connections to ZooKeeper are not encrypted: zookeeper.ssl.client.enable is not true")


def tls_problem(problem: OSError) -> str:
    """Why a server cannot be reached by TLS, and which setting to check. Follows "ZooKeeper: "."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        if problem.verify_code in _OTHER_HOST:
            return (
                f"its certificate is for another host ({problem.verify_message}): zookeeper.connect must have a name "
                "that is in the certificate"
            )
        return f"its certificate is not trusted ({problem.verify_message}): check zookeeper.ssl.truststore.location"
    if isinstance(problem, ssl.SSLError) and not isinstance(problem, ssl.SSLEOFError):
        reason = problem.reason or "UNKNOWN"
        for words, sentence in _ALERTS:
            if any(word in reason for word in words):
                return sentence
        return f"the TLS handshake failed ({failure_sentence(problem)})"
    done = "does not respond to" if isinstance(problem, TimeoutError) else "closed the connection in"
    return f"it {done} the TLS handshake: zookeeper.connect must have its secureClientPort"


def is_definite(problem: OSError) -> bool:
    """Whether another attempt would fail in the same way, unlike one to a server that is just starting."""
    return isinstance(problem, ssl.SSLError) and not isinstance(problem, ssl.SSLEOFError | ssl.SSLZeroReturnError)


_OTHER_HOST: Final = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_ALERTS: Final = (
    (
        ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"),
        "it does not speak TLS: zookeeper.connect must have its secureClientPort",
    ),
    (
        ("PROTOCOL",),
        "it speaks no version of TLS that is enabled: check zookeeper.ssl.protocol and zookeeper.ssl.enabled.protocols",
    ),
    (
        ("CERTIFICATE", "UNKNOWN_CA"),
        "it does not accept this broker's certificate, or requires one: check zookeeper.ssl.keystore.location",
    ),
    (
        ("HANDSHAKE_FAILURE", "NO_SHARED_CIPHER"),
        "no cipher suite suits both, or it requires a certificate: check zookeeper.ssl.cipher.suites, "
        "zookeeper.ssl.protocol and zookeeper.ssl.keystore.location",
    ),
)


# -- the login ---------------------------------------------------------------------------------------------------------


def _jvm_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """The system properties in `KAFKA_OPTS`, which are for Kafka's JVM."""
    try:
        words = shlex.split(environment.get(_OPTIONS, ""))
    except ValueError:
        raise InvalidSetting(f"the environment variable {_OPTIONS} has a quote that does not end") from None
    pairs = (word[2:].partition("=") for word in words if word.startswith("-D"))
    return {name: value for name, _, value in pairs}


def _login(config: ZooKeeperSettings, properties: Mapping[str, str]) -> Login | None:
    if properties.get(_ENABLED, "true").lower() == "false":
        return None
    found = _login_module(config, properties)
    if found is None:
        return None
    module, source = found
    if module.name != LOGIN_MODULE:
        raise InvalidSetting(
            f"{source} has the login module {module.name}: brokers log in to ZooKeeper by DIGEST-MD5 only, with "
            f"{LOGIN_MODULE}"
        )
    if missing := [name for name in ("username", "password") if not module.options.get(name)]:
        raise InvalidSetting(f"the login module of {source} lacks {' and '.join(missing)}")
    if not (module.options["username"] + module.options["password"]).isascii():
        # pure-sasl does not announce UTF-8, without which Java decodes Latin-1.
        raise InvalidSetting(f"username and password in {source} must be ASCII: others cannot be used for DIGEST-MD5")
    if importlib.util.find_spec("puresasl") is None:
        raise KasparError(
            "pure-sasl, by which brokers log in to ZooKeeper, is missing: pip install 'kaspar[zookeeper]'"
        )
    return Login(module.options["username"], module.options["password"], source)


def _login_module(config: ZooKeeperSettings, properties: Mapping[str, str]) -> tuple[LoginModule, str] | None:
    """The login module, and where it is configured."""
    text = config.kaspar_zookeeper_sasl_jaas_config
    if text:
        try:
            return parse_jaas(text), JAAS_SETTING
        except InvalidSetting as problem:
            raise InvalidSetting(f"{JAAS_SETTING} cannot be used: {problem}") from None
    file = properties.get(_JAAS_FILE, "").removeprefix("=").removeprefix("file:")
    if not file:
        return None
    section = properties.get(_SECTION, "Client")
    modules = _read_jaas_file(Path(file)).get(section)
    if modules is None:
        if _ENABLED in properties or _SECTION in properties:
            raise InvalidSetting(f"{file}, which {_OPTIONS} names, has no section {section}")
        return None  # as in Kafka: the file may only be for clients
    if len(modules) != 1:
        raise InvalidSetting(f"section {section} of {file} must have one login module, and has {len(modules)}")
    return modules[0], f"section {section} of {file}"


def _read_jaas_file(file: Path) -> dict[str, list[LoginModule]]:
    try:
        return parse_jaas_file(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidSetting(f"{file}, which {_OPTIONS} names, cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidSetting(f"{file}, which {_OPTIONS} names, is not a text file in UTF-8") from None
    except InvalidSetting as problem:
        raise InvalidSetting(f"{file} cannot be used: {problem}") from None
