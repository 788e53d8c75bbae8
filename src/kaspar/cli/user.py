"""`kaspar user`: manages SCRAM users."""

from typing import Final

import click

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.cli.asking import confirm, secret_option, yes_option
from kaspar.cli.command import Group
from kaspar.cli.failures import NotFound
from kaspar.cli.output import Column, Done
from kaspar.cli.session import Session, common_options

_EXAMPLES: Final = """\
examples:
  kaspar user create alice                               asks for the password
  kaspar user create app < password.txt
  kaspar user passwd alice
  kaspar user list
  kaspar user delete alice
  kaspar acl add --principal alice --operation read --topic orders
"""
_MECHANISM: Final = click.option(
    "--mechanism",
    type=click.Choice(["SCRAM-SHA-256", "SCRAM-SHA-512"], case_sensitive=False),
    default="SCRAM-SHA-512",
    help="SCRAM mechanism (default: SCRAM-SHA-512).",
)
_ITERATIONS: Final = click.option(
    "--iterations", type=int, default=4096, metavar="N", help="SCRAM iterations (default: 4096)."
)


@click.group("user", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """List, create and delete SCRAM users, and change their passwords."""


@command.command("list", epilog="Example: kaspar user list --json")
@common_options
def list_users(session: Session) -> None:
    """List the users and their SCRAM mechanisms."""
    from kaspar.client.admin.scram import describe_scram_credentials

    with session.admin() as admin:
        found = describe_scram_credentials(admin)
    rows = [
        {"name": name, "mechanism": info.mechanism, "iterations": info.iterations}
        for name, infos in sorted(found.items())
        if not isinstance(infos, Refused)
        for info in infos
    ]
    columns = [Column("name", "USER"), Column("mechanism", "MECHANISM"), Column("iterations", "ITERATIONS")]
    session.output.table(columns, rows, empty="There are no SCRAM users: 'kaspar user create NAME' creates one.")


@command.command("create", epilog=_EXAMPLES)
@click.argument("name", metavar="USER")
@secret_option("Password")
@_MECHANISM
@_ITERATIONS
@common_options
def create(session: Session, name: str, password: str, mechanism: str, iterations: int) -> int:
    """Create a user."""
    if mechanism in _mechanisms(session, name):
        raise KasparError(f"the user {name} already exists: 'kaspar user passwd {name}' changes the password")
    return _upsert(session, name, password, mechanism, iterations, "created")


@command.command("passwd", epilog=_EXAMPLES)
@click.argument("name", metavar="USER")
@secret_option("New password")
@_MECHANISM
@_ITERATIONS
@common_options
def passwd(session: Session, name: str, password: str, mechanism: str, iterations: int) -> int:
    """Change the password of a user."""
    if not _mechanisms(session, name):
        raise NotFound(f"there is no user {name}: 'kaspar user create {name}' creates it")
    return _upsert(session, name, password, mechanism, iterations, "has a new password")


@command.command("delete", epilog=_EXAMPLES)
@click.argument("name", metavar="USER")
@yes_option
@common_options
def delete(session: Session, name: str, yes: bool) -> int:
    """Delete a user. ACLs of the user are kept."""
    from kaspar.client.admin.scram import OldScramCredential, alter_scram_credentials

    mechanisms = _mechanisms(session, name)
    if not mechanisms:
        raise NotFound(f"there is no user {name}: 'kaspar user list' lists the users")
    confirm(f"Delete the user {name}?", yes=yes)
    with session.admin() as admin:
        for mechanism in mechanisms:  # one request each, because brokers refuse two changes of one user in a request
            refused = alter_scram_credentials(admin, old=[OldScramCredential(name, mechanism)])[name]
            if refused is not None:
                return session.output.results([Done(f"user {name}", {"user": name}, problem=refused)])
    return session.output.results([Done(f"user {name}", {"user": name}, "deleted")])


def _mechanisms(session: Session, name: str) -> list[str]:
    from kaspar.client.admin.scram import describe_scram_credentials

    with session.admin() as admin:
        found = describe_scram_credentials(admin, [name]).get(name, ())
    if isinstance(found, Refused):
        if found.code is not ErrorCode.RESOURCE_NOT_FOUND:
            raise found
        return []
    return [info.mechanism for info in found]


def _upsert(session: Session, name: str, password: str, mechanism: str, iterations: int, sentence: str) -> int:
    from kaspar.client.admin.scram import NewScramCredential, ScramCredentialInfo, alter_scram_credentials

    new = NewScramCredential(name, password, ScramCredentialInfo(mechanism, iterations))
    with session.admin() as admin:
        refused = alter_scram_credentials(admin, new=[new])[name]
    return session.output.results([Done(f"user {name}", {"user": name}, sentence, refused)])
