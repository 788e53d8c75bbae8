"""`kaspar certs`: a certificate authority, and certificates for brokers and clients, in one command."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import KasparError
from kaspar.cli.command import Command

if TYPE_CHECKING:
    from kaspar.security.certificates import Issued

_EXAMPLES: Final = """\
examples:
  kaspar certs                                       a CA and a broker's certificate for localhost, in ./certs
  kaspar certs --host kafka1.example.com --client alice --client bob
  kaspar certs --name zookeeper --host zk1.example.com    a ZooKeeper server's, by the same CA
  kaspar certs --client carol                        one more client; the CA and existing certificates are kept
"""


@click.command("certs", cls=Command, epilog=_EXAMPLES)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("certs"),
    metavar="FOLDER",
    help="The folder (default: ./certs).",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A host name or address of the brokers; may be repeated (default: localhost and 127.0.0.1).",
)
@click.option(
    "--name",
    default="broker",
    help="The name of the servers' certificate and its file, as in --name zookeeper (default: broker).",
)
@click.option("--client", "clients", multiple=True, metavar="NAME", help="A client's certificate; may be repeated.")
@click.option("--password", help="Also write PKCS #12 stores (.p12) with this password.")
def command(folder: Path, hosts: Sequence[str], name: str, clients: Sequence[str], password: str | None) -> None:
    """Create a certificate authority and certificates for brokers and clients. Existing files are kept. Each
    certificate is written as PEM (key and chain) and, with --password, as PKCS #12. For small and test clusters: anyone
    with ca.key can issue certificates for any name."""
    _make(folder, name, list(hosts) or ["localhost", "127.0.0.1"], list(clients), password)


def _make(folder: Path, server: str, hosts: list[str], clients: list[str], password: str | None) -> None:
    from kaspar.security.certificate_files import load_or_make_authority

    for name in (server, *clients):
        if not name or "/" in name or name == "ca" or (name in clients and name in ("broker", server)):
            raise KasparError(f"{name!r} is not a valid name for a certificate's files")
    folder.mkdir(parents=True, exist_ok=True)
    authority = load_or_make_authority(folder, print)
    if not (folder / f"{server}.pem").exists():
        _write_issued(folder, authority.issue(server, hosts=hosts), password)
    for name in clients:
        if not (folder / f"{name}.pem").exists():
            _write_issued(folder, authority.issue(name), password)
    if server == "broker":
        _explain(folder.absolute(), clients)
    else:
        _explain_server(folder.absolute(), server)


def _write_issued(folder: Path, issued: "Issued", password: str | None) -> None:
    from kaspar.security.certificate_files import write_new

    write_new(folder / f"{issued.name}.pem", issued.key_and_chain, say=print)
    if password is not None:
        write_new(folder / f"{issued.name}.p12", issued.pkcs12(password), say=print)


def _explain_server(folder: Path, server: str) -> None:
    print(
        f"\n{folder}/{server}.pem contains the key and the certificate of {server}. Clients must trust {folder}/ca.pem."
    )


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
