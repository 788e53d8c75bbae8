"""Cipher suites by their IANA names, as in Java and therefore in Kafka's settings, and by OpenSSL's names.

OpenSSL selects the suites of TLS 1.3 by a call that Python's ssl does not offer, so all of them are enabled. A list
without any of them disables TLS 1.3, and a list with some of them is refused.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kaspar.base.errors import InvalidSetting

TLS_1_3: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
_KEY_EXCHANGES: Final = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "DHE_RSA": "DHE-RSA-", "RSA": ""}
_CIPHERS: Final = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CCM": "AES256-CCM",
    "AES_128_CCM": "AES128-CCM",
}


class CipherChoice(NamedTuple):
    """`openssl` is the list for TLS 1.2, empty if it contains none of its suites."""

    openssl: str
    with_tls_1_3: bool


def choose(names: Sequence[str]) -> CipherChoice | None:
    """The suites to use; None for an empty list, which means OpenSSL's defaults. Raises InvalidSetting."""
    wanted = [name for name in names if name]
    if not wanted:
        return None
    newest = [name for name in wanted if name in TLS_1_3]
    if newest and len(set(newest)) < len(TLS_1_3):
        raise InvalidSetting(
            f"ssl.cipher.suites has {', '.join(newest)} and not all suites of TLS 1.3: Python cannot choose among "
            f"{', '.join(TLS_1_3)}. Name all three, or none to switch TLS 1.3 off"
        )
    older = [openssl_name(name) for name in wanted if name not in TLS_1_3]
    return CipherChoice(":".join(older), bool(newest))


def openssl_name(name: str) -> str:
    exchange, separator, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if separator and exchange in _KEY_EXCHANGES and cipher in _CIPHERS:
        return _KEY_EXCHANGES[exchange] + _CIPHERS[cipher]
    raise InvalidSetting(f"ssl.cipher.suites contains {name}, which is not a known cipher suite")


_IANA_NAMES: Final = {
    exchange_prefix + cipher_name: f"TLS_{exchange}_WITH_{cipher}"
    for exchange, exchange_prefix in _KEY_EXCHANGES.items()
    for cipher, cipher_name in _CIPHERS.items()
}


def iana_name(openssl: str) -> str:
    """The name as in Java and therefore in Kafka's metrics. An unknown name is returned unchanged."""
    return _IANA_NAMES.get(openssl, openssl)
