"""A certificate authority and its certificates as files of one folder: `ca.key`, `ca.pem`, `NAME.pem`.

Private keys are readable only by their owner, from their creation on. Existing files are kept.
"""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from kaspar.base.errors import KasparError
from kaspar.security.certificates import CertificateAuthority


def load_or_make_authority(folder: Path, say: Callable[[str], None] = lambda line: None) -> CertificateAuthority:
    """Raises KasparError if an existing authority cannot be used, OSError if the files cannot be written."""
    certificate, key = folder / "ca.pem", folder / "ca.key"
    if certificate.exists() and key.exists():
        try:
            return CertificateAuthority.load(certificate.read_bytes(), key.read_bytes())
        except ValueError as problem:
            raise KasparError(f"{certificate} and {key} cannot be used: {problem}") from None
    if certificate.exists():
        raise KasparError(f"{key} is missing: nothing can be signed by the authority of {certificate}")
    authority = CertificateAuthority.new()
    write_new(key, authority.key, say=say)
    write_new(certificate, authority.certificate, mode=0o644, say=say)
    return authority


def renew_if_due(
    file: Path, authority: CertificateAuthority, common_name: str, *, hosts: Sequence[str] = (), days: int
) -> None:
    """Issue a key and a certificate into this file, unless the one there stays valid for this number of days."""
    if file.exists() and _expires(file) > datetime.now(UTC) + timedelta(days=days):
        return
    replace(file, authority.issue(common_name, hosts=hosts).key_and_chain)


def write_new(file: Path, content: bytes, *, mode: int = 0o600, say: Callable[[str], None] = lambda line: None) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
        opened.write(content)
    say(f"wrote {file}")


def replace(file: Path, content: bytes) -> None:
    """Replace or create a file atomically. It is readable only by its owner. Raises OSError."""
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)
    write_new(new, content)
    new.rename(file)


def _expires(file: Path) -> datetime:
    try:
        return x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc
    except ValueError:
        raise KasparError(f"{file} has no readable certificate: remove it to have another one created") from None
