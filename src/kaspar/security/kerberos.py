"""GSSAPI (RFC 4752) with Kerberos 5, as in Kafka. Both sides.

Tokens establish a security context; then the broker offers security layers, and the client chooses one. Kafka has none:
the broker only offers "no layer", and encryption is left to TLS. The authorization id that a client sends is ignored,
as in Kafka's SaslServerCallbackHandler: the authenticated name is used. Python clients send the broker's name as the
authorization id.

All of this blocks: the broker's side reads the keytab and writes the replay cache, the client's side contacts the KDC.
So it is called in threads. The package `gssapi` is an extra of Kaspar, and this module cannot be imported without it.
"""

import hashlib
import threading
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.security.kerberos_names import NoShortName, ShortNames
from kaspar.security.krb5_login_module import KerberosLogin
from kaspar.security.sasl import InvalidCredentials

try:
    import gssapi
except ImportError as _missing:
    raise InvalidSetting(
        "GSSAPI needs the extra `kerberos`: pip install 'kaspar[kerberos]', which is compiled with the headers of "
        f"Kerberos (libkrb5-dev on Debian, krb5-devel on Fedora): {_missing}"
    ) from None

MAX_ROUNDS: Final = 10
"""Kerberos needs three or four messages of a client. More mean that the exchange makes no progress."""
_NO_LAYER: Final = 1
_OFFER: Final = bytes([_NO_LAYER, 0, 0, 0])
"""The layers in the first byte, then the maximum message size with a layer: none."""
_MAX_SENTENCE: Final = 500
_KERBEROS: Final = gssapi.MechType.kerberos

_tickets: Final = threading.Lock()
"""Threads share the tickets of a principal in one cache, which is emptied when a ticket is renewed."""


class _Stage(Enum):
    CONTEXT = auto()
    OFFER = auto()
    CHOICE = auto()


class Acceptor:
    """A broker's key, and the rules that map principals to names."""

    def __init__(self, login: KerberosLogin, rules: Sequence[str]) -> None:
        """Raises InvalidSetting if the key is missing, so that the broker does not start."""
        if login.keytab is None:
            raise InvalidSetting("a broker needs useKeyTab=true with keyTab and principal in its Krb5LoginModule")
        store = {"keytab": login.keytab} if login.keytab else None
        try:
            self._credentials = gssapi.Credentials(
                name=_principal(login.principal), usage="accept", mechs=[_KERBEROS], store=store
            )
            default_realm = str(_principal("-").canonicalize(_KERBEROS)).rpartition("@")[2]
        except gssapi.exceptions.GSSError as problem:
            raise InvalidSetting(f"{_source(login)} cannot be used: {_sentence(problem)}") from None
        self._names = ShortNames(rules, default_realm)

    def new_server(self) -> "GssapiServer":
        # The keytab is opened for each exchange, so that keys can be added while the broker runs.
        return GssapiServer(self._credentials, self._names)


class GssapiServer:
    is_token = False
    expires_ms: int | None = None  # in Kafka too, only connections.max.reauth.ms limits sessions, not the ticket
    blocks = True

    def __init__(self, credentials: gssapi.Credentials, names: ShortNames) -> None:
        self.is_complete = False
        self.authorization_id = ""
        self._names = names
        self._context = _context(gssapi.SecurityContext(creds=credentials, usage="accept"))
        self._stage = _Stage.CONTEXT
        self._rounds = 0

    def evaluate(self, token: bytes) -> bytes | None:
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            raise InvalidCredentials(f"the exchange has not ended after {MAX_ROUNDS} messages")
        try:
            match self._stage:
                case _Stage.CONTEXT:
                    return self._establish(token)
                case _Stage.OFFER:
                    if token:
                        raise InvalidCredentials("an empty message was expected")
                    return self._offer()
                case _Stage.CHOICE:
                    self._choose(self._context.unwrap(token).message)
                    return None
        except gssapi.exceptions.GSSError as problem:
            raise InvalidCredentials(_sentence(problem)) from None

    def _establish(self, token: bytes) -> bytes:
        response = self._context.step(token)
        if not self._context.complete:
            return response or b""
        if gssapi.RequirementFlag.anonymity in self._context.actual_flags:
            raise InvalidCredentials("the client is anonymous")
        self._stage = _Stage.OFFER
        return response or self._offer()

    def _offer(self) -> bytes:
        self._stage = _Stage.CHOICE
        return self._context.wrap(_OFFER, False).message

    def _choose(self, choice: bytes) -> None:
        if len(choice) < len(_OFFER) or choice[0] != _NO_LAYER:
            raise InvalidCredentials("the client requires a security layer, which is not supported")
        try:
            self.authorization_id = self._names.name_of(bytes(self._context.initiator_name).decode())
        except (NoShortName, UnicodeDecodeError) as problem:
            raise InvalidCredentials(str(problem)) from None
        self.is_complete = True


class GssapiClient:
    def __init__(self, login: KerberosLogin, service: str, host: str) -> None:
        """`host` is the broker's as the client addresses it: the ticket is for service/host."""
        self.is_complete = False
        self._login = login
        self._broker = f"{service}@{host}"
        self._context: gssapi.SecurityContext | None = None
        self._has_chosen = False

    def first(self) -> bytes:
        try:
            with _tickets:
                self._context = _context(
                    gssapi.SecurityContext(
                        name=gssapi.Name(self._broker, gssapi.NameType.hostbased_service),
                        creds=_initiator(self._login),
                        mech=_KERBEROS,
                        flags=[gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.integrity],
                        usage="initiate",
                    )
                )
                return self._context.step() or b""
        except gssapi.exceptions.GSSError as problem:
            raise InvalidCredentials(
                f"no Kerberos ticket for {self._broker} with {_source(self._login)}: {_sentence(problem)}"
            ) from None

    def evaluate(self, challenge: bytes) -> bytes | None:
        context = self._context
        assert context is not None, "the first message comes first"
        if self._has_chosen:
            self.is_complete = True
            return None
        try:
            if not context.complete:
                return context.step(challenge) or b""
            offer = context.unwrap(challenge).message
            if len(offer) != len(_OFFER) or not offer[0] & _NO_LAYER:
                raise InvalidCredentials("the broker requires a security layer, which is not supported")
            self._has_chosen = True
            return context.wrap(_OFFER + bytes(context.initiator_name), False).message
        except gssapi.exceptions.GSSError as problem:
            raise InvalidCredentials(f"{self._broker} cannot be authenticated: {_sentence(problem)}") from None


def _initiator(login: KerberosLogin) -> gssapi.Credentials:
    """The tickets of a client: as in Java, those of the ticket cache if there are any, otherwise the keytab's."""
    name = _principal(login.principal) if login.principal else None
    if login.ticket_cache is not None:
        store = {"ccache": login.ticket_cache} if login.ticket_cache else None
        try:
            return gssapi.Credentials(name=name, usage="initiate", mechs=[_KERBEROS], store=store)
        except gssapi.exceptions.GSSError:
            if login.keytab is None:
                raise
    # Kerberos fetches a ticket with the key if there is none in the cache, and again in the middle of its lifetime.
    shared = hashlib.sha256(f"{login.principal}\0{login.keytab}".encode()).hexdigest()[:32]
    store = {"ccache": f"MEMORY:kaspar-{shared}", **({"client_keytab": login.keytab} if login.keytab else {})}
    return gssapi.Credentials(name=name, usage="initiate", mechs=[_KERBEROS], store=store)


def _principal(name: str) -> gssapi.Name:
    return gssapi.Name(name, gssapi.NameType.kerberos_principal)


def _context(context: gssapi.SecurityContext) -> gssapi.SecurityContext:
    """Make the context raise failures immediately: tokens that describe an error are not sent."""
    context.__DEFER_STEP_ERRORS__ = False
    return context


def _sentence(problem: gssapi.exceptions.GSSError) -> str:
    """Kerberos's message, or else GSSAPI's, for the log. It can contain names of principals and files, but never a key.
    A name may come from an untrusted client, and have any length and any characters.
    """
    texts = problem.get_all_statuses(problem.min_code, False) if problem.min_code else []
    texts = [text for text in texts if text and text != "Success"]
    sentence = "; ".join(texts or problem.get_all_statuses(problem.maj_code, True))
    return "".join(each if each.isprintable() else "?" for each in sentence[:_MAX_SENTENCE])


def _source(login: KerberosLogin) -> str:
    if login.keytab is not None:
        return f"the key of {login.principal} in {login.keytab or 'the default keytab'}"
    whose = f" of {login.principal}" if login.principal else ""
    return f"the tickets{whose} in {login.ticket_cache or 'the default cache'}"
