"""The TLS context of a listener, recreated when its key or trust store has changed.

As in Kafka, a new certificate must have the old one's subject and at least its alternative names, unless
`ssl.allow.dn.changes` and `ssl.allow.san.changes` say otherwise. So the store of another broker, put there by mistake,
does not replace the right one.
"""

import ssl
import time
from collections.abc import Mapping
from typing import Final

from cryptography import x509

from kaspar.base.errors import InvalidSetting
from kaspar.base.log import get_log
from kaspar.security.key_stores import load_key_store, store_files
from kaspar.security.tls import server_context

log = get_log(__name__)

LOOK_AGAIN_S: Final = 1.0


class TlsFiles:
    def __init__(self, listener: str, settings: Mapping[str, str], client_auth: str) -> None:
        """Raises InvalidSetting."""
        self._listener = listener
        self._settings, self._client_auth = settings, client_auth
        self._looked_at = time.monotonic()
        self._seen = _state_of(settings)
        self._certificate = _certificate(settings)
        self._context = server_context(settings, client_auth)

    def context(self) -> ssl.SSLContext:
        """The context for a new connection. Files are checked at most once a second."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at = now
            if _state_of(self._settings) != self._seen:
                self._read_again()
        return self._context

    def replace(self, settings: Mapping[str, str], client_auth: str) -> None:
        """Apply changed settings. Raises InvalidSetting, and then changes nothing."""
        seen = _state_of(settings)
        certificate = _certificate(settings)
        _check_same_owner(settings, self._certificate, certificate)
        self._context = server_context(settings, client_auth)
        self._settings, self._client_auth = settings, client_auth
        self._seen, self._certificate = seen, certificate

    def _read_again(self) -> None:
        self._seen = _state_of(self._settings)  # a file that cannot be used is tried once
        try:
            self.replace(self._settings, self._client_auth)
            log.info("reloaded key and trust stores", listener=self._listener)
        except InvalidSetting as problem:
            log.warning("changed key or trust stores cannot be used", listener=self._listener, problem=str(problem))


def _state_of(settings: Mapping[str, str]) -> tuple[tuple[int, int] | None, ...]:
    """The state of the files, which changes when one of them does."""
    state: list[tuple[int, int] | None] = []
    for file in store_files(settings):
        try:
            status = file.stat()
            state.append((status.st_mtime_ns, status.st_ino))
        except OSError:
            state.append(None)
    return tuple(state)


def _certificate(settings: Mapping[str, str]) -> x509.Certificate | None:
    pair = load_key_store(settings)
    return None if pair is None else pair.certificate


def _check_same_owner(settings: Mapping[str, str], old: x509.Certificate | None, new: x509.Certificate | None) -> None:
    if old is None or new is None:
        return
    if old.subject != new.subject and not _is_true(settings, "ssl.allow.dn.changes"):
        raise InvalidSetting(
            "the distinguished name of the new certificate differs from the old one: ssl.allow.dn.changes=true "
            "allows it"
        )
    if not _alternative_names(old) <= _alternative_names(new) and not _is_true(settings, "ssl.allow.san.changes"):
        raise InvalidSetting(
            "the new certificate lacks alternative names of the old one: ssl.allow.san.changes=true allows it"
        )


def _is_true(settings: Mapping[str, str], name: str) -> bool:
    return settings.get(name, "false").strip().lower() == "true"


def _alternative_names(certificate: x509.Certificate) -> set[x509.GeneralName]:
    try:
        return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return set()
