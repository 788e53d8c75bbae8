"""TLS of a service's listeners, from `ssl.*` settings or from PEM files. Changed files apply to new connections."""

import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.security.key_stores import store_files
from kaspar.security.tls import server_context


class StoreTls:
    """TLS from key and trust stores."""

    def __init__(self, settings: Mapping[str, str], client_auth: str) -> None:
        self._settings = settings
        self._client_auth = client_auth
        self.context: ssl.SSLContext

    def files(self) -> Iterable[Path]:
        return store_files(self._settings)

    def load(self) -> None:
        self.context = server_context(self._settings, self._client_auth)


class PemTls:
    """TLS from a certificate chain and its key, in two files or in one."""

    def __init__(self, certificate_file: str, key_file: str = "") -> None:
        self._certificate = Path(certificate_file)
        self._key = Path(key_file) if key_file else self._certificate
        self.context: ssl.SSLContext

    def files(self) -> Iterable[Path]:
        return self._certificate, self._key

    def load(self) -> None:
        try:
            settings = {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": self._certificate.read_text(encoding="ascii"),
                "ssl.keystore.key": self._key.read_text(encoding="ascii"),
            }
            self.context = server_context(settings, "none")
        except OSError as problem:
            raise self._unusable(problem.strerror or str(problem)) from None
        except UnicodeDecodeError:
            raise self._unusable("it is not PEM") from None
        except InvalidSetting as problem:
            raise self._unusable(str(problem)) from None

    def _unusable(self, reason: str) -> KasparError:
        return KasparError(f"the certificate {self._certificate} of the HTTP pages cannot be used: {reason}")
