"""`kaspar certs`: a certificate authority, and certificates for brokers and clients, in one command."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError

if TYPE_CHECKING:
    from kaspar.security.certificates import CertificateAuthority, Issued

_EXAMPLES: Final = """\
examples:
  kaspar certs                                       a CA and a broker's certificate for localhost, in ./certs
  kaspar certs --host kafka1.example.com --client alice --client bob
  kaspar certs --name zookeeper --host zk1.example.com    a ZooKeeper server's, by the same CA
  kaspar certs --client carol                        one more client; the CA and what is there are kept
"""


def add_certs(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    certs = commands.add_parser(
        "certs",
        help="make certificates for TLS: a CA, brokers, clients",
        description="Make a certificate authority and certificates for brokers and clients. What exists is kept.\n"
        "Each certificate comes as PEM (key and chain) and, with --password, as PKCS #12. For test clusters\n"
        "and small ones: whoever has ca.key can make certificates for anybody.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    certs.add_argument("--dir", type=Path, default=Path("certs"), help="the folder (default: ./certs)")
    certs.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name or address of the brokers; may be repeated (default: localhost and 127.0.0.1)",
    )
    certs.add_argument(
        "--name",
        default="broker",
        help="the name of the servers' certificate and its file, as in --name zookeeper (default: %(default)s)",
    )
    certs.add_argument(
        "--client", action="append", default=[], metavar="NAME", help="a client's certificate; may be repeated"
    )
    certs.add_argument("--password", help="also write PKCS #12 stores (.p12) with this password")


def run_certs(arguments: argparse.Namespace) -> int:
    try:
        hosts = arguments.host or ["localhost", "127.0.0.1"]
        _make(arguments.dir, arguments.name, hosts, arguments.client, arguments.password)
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    except OSError as problem:
        print(f"kaspar: {problem.filename}: {problem.strerror}", file=sys.stderr)
        return 1
    return 0


def _make(folder: Path, server: str, hosts: list[str], clients: list[str], password: str | None) -> None:
    for name in (server, *clients):
        if not name or "/" in name or name == "ca" or (name in clients and name in ("broker", server)):
            raise KasparError(f"{name!r} cannot be the name of a certificate's files")
    folder.mkdir(parents=True, exist_ok=True)
    authority = _authority(folder)
    if not (folder / f"{server}.pem").exists():
        _write_issued(folder, authority.issue(server, hosts=hosts), password)
    for name in clients:
        if not (folder / f"{name}.pem").exists():
            _write_issued(folder, authority.issue(name), password)
    if server == "broker":
        _explain(folder.absolute(), clients)
    else:
        _explain_server(folder.absolute(), server)


def _authority(folder: Path) -> "CertificateAuthority":
    from kaspar.security.certificates import CertificateAuthority

    certificate, key = folder / "ca.pem", folder / "ca.key"
    if certificate.exists() and key.exists():
        try:
            return CertificateAuthority.load(certificate.read_bytes(), key.read_bytes())
        except ValueError as problem:
            raise KasparError(f"{certificate} and {key} cannot be used: {problem}") from None
    if certificate.exists():
        raise KasparError(f"{key} is missing: nothing can be signed by the authority of {certificate}")
    authority = CertificateAuthority.new()
    _write(key, authority.key)
    _write(certificate, authority.certificate, mode=0o644)
    return authority


def _write_issued(folder: Path, issued: "Issued", password: str | None) -> None:
    _write(folder / f"{issued.name}.pem", issued.key_and_chain)
    if password is not None:
        _write(folder / f"{issued.name}.p12", issued.pkcs12(password))


def _write(file: Path, content: bytes, mode: int = 0o600) -> None:
    """A private key is readable by its owner only, from its first byte."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
        opened.write(content)
    print(f"wrote {file}")


def _explain_server(folder: Path, server: str) -> None:
    print(f"\n{folder}/{server}.pem has the key and the certificate of {server}. Its clients trust {folder}/ca.pem.")


def _explain(folder: Path, clients: list[str]) -> None:
    name = clients[0] if clients else None
    print(
        f"""
Settings of a broker:
  listeners=SSL://:9093
  ssl.keystore.type=PEM
  ssl.keystore.location={folder}/broker.pem
  ssl.truststore.type=PEM
  ssl.truststore.location={folder}/ca.pem"""
        + ("\n  ssl.client.auth=required" if name else "")
        + f"""

Settings of a Java client:
  security.protocol=SSL
  ssl.truststore.type=PEM
  ssl.truststore.location={folder}/ca.pem"""
        + (f"\n  ssl.keystore.type=PEM\n  ssl.keystore.location={folder}/{name}.pem" if name else "")
        + f"""

Settings of librdkafka:
  security.protocol=SSL
  ssl.ca.location={folder}/ca.pem"""
        + (f"\n  ssl.certificate.location={folder}/{name}.pem\n  ssl.key.location={folder}/{name}.pem" if name else "")
    )
