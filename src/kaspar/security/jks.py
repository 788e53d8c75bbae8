"""Reads Java key stores (JKS), the format of Sun's provider: certificates, and private keys under a password.

The file is big-endian: magic, version, entries, and a SHA-1 digest of the password and everything before it. A private
key is masked by a chain of SHA-1 digests that starts with its password and a salt.
"""

import hashlib
import struct
from dataclasses import dataclass, field
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.security import der

MAGIC: Final = b"\xfe\xed\xfe\xed"
_DIGEST_BYTES: Final = 20
_PEPPER: Final = b"Mighty Aphrodite"
_PRIVATE_KEY, _TRUSTED_CERTIFICATE = 1, 2


@dataclass(frozen=True, slots=True)
class PrivateKeyEntry:
    """A masked PKCS #8 key and its certificates in DER, the key's own first."""

    alias: str
    masked_key: bytes = field(repr=False)
    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class JavaKeyStore:
    keys: tuple[PrivateKeyEntry, ...]
    trusted: tuple[bytes, ...]


def read_jks(data: bytes, password: str | None) -> JavaKeyStore:
    """Read a store. Without a password its digest is not checked, as Java allows for trust stores."""
    if password is not None:
        wanted = hashlib.sha1(password.encode("utf-16-be") + _PEPPER + data[:-_DIGEST_BYTES]).digest()
        if wanted != data[-_DIGEST_BYTES:]:
            raise InvalidSetting("the key store was tampered with, or its password is incorrect")
    try:
        return _read(_Reader(data[:-_DIGEST_BYTES]))
    except (struct.error, IndexError, UnicodeDecodeError):
        raise InvalidSetting("the key store is damaged") from None


def unmask(masked_key: bytes, password: str) -> bytes:
    """The PKCS #8 key of a private-key entry, in DER."""
    wrapped = _octets_of_encrypted_key(masked_key)
    salt, body, check = wrapped[:_DIGEST_BYTES], wrapped[_DIGEST_BYTES:-_DIGEST_BYTES], wrapped[-_DIGEST_BYTES:]
    secret = password.encode("utf-16-be")
    digest, stream = salt, b""
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    key = bytes(left ^ right for left, right in zip(body, stream, strict=False))
    if hashlib.sha1(secret + key).digest() != check:
        raise InvalidSetting("the password of the private key is incorrect")
    return key


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._data, self._position)
        self._position += struct.calcsize(form)
        return int(value)

    def block(self, length: int) -> bytes:
        start, self._position = self._position, self._position + length
        if length < 0 or self._position > len(self._data):
            raise IndexError
        return self._data[start : self._position]

    def text(self) -> str:
        return self.block(self.number(">H")).decode()

    def certificate(self, version: int) -> bytes:
        if version == 2:
            self.text()  # X.509
        return self.block(self.number(">I"))


def _read(reader: _Reader) -> JavaKeyStore:
    reader.block(len(MAGIC))
    version = reader.number(">I")
    if version not in (1, 2):
        raise InvalidSetting(f"the key store has version {version}; supported: 1 and 2")
    keys, trusted = [], []
    for _ in range(reader.number(">I")):
        tag, alias = reader.number(">I"), reader.text()
        reader.number(">Q")  # the creation time
        if tag == _PRIVATE_KEY:
            masked = reader.block(reader.number(">I"))
            chain = tuple(reader.certificate(version) for _ in range(reader.number(">I")))
            keys.append(PrivateKeyEntry(alias, masked, chain))
        elif tag == _TRUSTED_CERTIFICATE:
            trusted.append(reader.certificate(version))
        else:
            raise InvalidSetting(f"the key store has an entry of unknown kind {tag}")
    return JavaKeyStore(tuple(keys), tuple(trusted))


def _octets_of_encrypted_key(encoded: bytes) -> bytes:
    """The octets of EncryptedPrivateKeyInfo ::= SEQUENCE { SEQUENCE { algorithm }, OCTET STRING }."""
    content = der.content(encoded)
    return der.content(content, der.end(content))
