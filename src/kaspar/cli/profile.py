"""`kaspar profile`: manages named connection profiles."""

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from kaspar.base.errors import KasparError
from kaspar.cli.asking import confirm, yes_option
from kaspar.cli.command import Group
from kaspar.cli.output import Column, Output
from kaspar.cli.profiles import BOOTSTRAP_SERVERS, Profiles, default_folder, is_secret, read_properties_file
from kaspar.cli.session import DEFAULT_SERVERS, output_options, pairs

_EXAMPLES: Final = """\
examples:
  kaspar profile create local -b localhost:9092
  kaspar profile create prod -b kafka1:9093,kafka2:9093 --config client.properties
  kaspar profile use prod                         use prod in all commands from now on
  kaspar topic list --profile local               use local for this command only
  kaspar profile show prod

A profile is a file of Java client properties in $XDG_CONFIG_HOME/kaspar/profiles (~/.config), readable only by you.
"""
_MASKED: Final = "********"


@click.group("profile", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Manage named connection profiles: the addresses and security settings of clusters."""


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in _profiles().names() if name.startswith(incomplete)]


_NAME: Final = click.argument("name", shell_complete=_complete)


def _profiles() -> Profiles:
    return Profiles(default_folder())


@command.command("create", epilog=_EXAMPLES)
@_NAME
@click.option("-b", "--bootstrap-server", "servers", metavar="HOST:PORT", help="Brokers of the cluster.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Copy the settings of this Java client properties file.",
)
@click.option("-X", "settings", multiple=True, metavar="NAME=VALUE", help="A client property; may be repeated.")
@click.option("--replace", is_flag=True, help="Replace an existing profile.")
def create(name: str, servers: str | None, config_file: Path | None, settings: Sequence[str], replace: bool) -> None:
    """Create a profile. The first one is put in use at once."""
    profiles = _profiles()
    if profiles.file(name).exists() and not replace:
        raise KasparError(
            f"the profile {name} already exists: change it with 'kaspar profile edit {name}', or use --replace"
        )
    properties = {BOOTSTRAP_SERVERS: DEFAULT_SERVERS}
    if config_file is not None:
        properties |= _with_absolute_paths(read_properties_file(config_file))
    properties |= pairs(settings, "-X")
    if servers is not None:
        properties[BOOTSTRAP_SERVERS] = servers
    is_first = not profiles.names()
    file = profiles.write(name, properties)
    if is_first:
        profiles.use(name)
    print(f"Created the profile {name} ({file})" + (", which is now in use." if is_first else "."))


def _with_absolute_paths(properties: Mapping[str, str]) -> dict[str, str]:
    """Make relative file names in the settings absolute, because commands also run in other directories."""
    return {
        name: str(Path(value).absolute()) if name.endswith(".location") and Path(value).exists() else value
        for name, value in properties.items()
    }


@command.command("list", epilog="Example: kaspar profile list --json")
@output_options
def list_profiles(output: Output) -> None:
    """List the profiles and which one is in use."""
    profiles = _profiles()
    current = profiles.current()
    rows = [
        {"name": name, "current": name == current, "bootstrap_servers": profiles.read(name).get(BOOTSTRAP_SERVERS)}
        for name in profiles.names()
    ]
    columns = [
        Column("name", "NAME"),
        Column("current", "CURRENT", lambda is_current: "*" if is_current else ""),
        Column("bootstrap_servers", "BOOTSTRAP SERVERS"),
    ]
    output.table(columns, rows, empty="There are no profiles: 'kaspar profile create NAME -b HOST:PORT' creates one.")


@command.command("use", epilog="Example: kaspar profile use prod")
@click.argument("name", required=False, shell_complete=_complete)
@click.option("--none", "is_none", is_flag=True, help="Use no profile, but localhost:9092.")
def use(name: str | None, is_none: bool) -> None:
    """Use this profile in all commands without --profile."""
    if (name is None) is not is_none:
        raise click.UsageError("name a profile, or use --none")
    _profiles().use(name)
    print(f"The profile {name} is now in use." if name else "No profile is in use now.")


@command.command("show", epilog="Example: kaspar profile show prod --secrets")
@click.argument("name", required=False, shell_complete=_complete)
@click.option("--secrets", is_flag=True, help="Show passwords too.")
@output_options
def show(output: Output, name: str | None, secrets: bool) -> None:
    """Show the settings of a profile, by default of the one in use. Passwords are masked."""
    profiles = _profiles()
    chosen = name or profiles.current()
    if chosen is None:
        raise KasparError("no profile is in use: 'kaspar profile use NAME' chooses one")
    properties = {
        key: value if secrets or not is_secret(key) else _MASKED for key, value in profiles.read(chosen).items()
    }
    output.record(properties, lambda: output.fields(properties.items()))


@command.command("delete", epilog="Example: kaspar profile delete old")
@_NAME
@yes_option
def delete(name: str, yes: bool) -> None:
    """Delete a profile."""
    profiles = _profiles()
    profiles.existing(name)
    confirm(f"Delete the profile {name}?", yes=yes)
    profiles.delete(name)
    print(f"Deleted the profile {name}.")


@command.command("edit", epilog="Example: EDITOR=nano kaspar profile edit prod")
@_NAME
def edit(name: str) -> None:
    """Open a profile in $VISUAL, $EDITOR or vi."""
    profiles = _profiles()
    file = profiles.existing(name)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        ended = subprocess.run([*shlex.split(editor), str(file)], check=False)
    except FileNotFoundError:
        raise KasparError(f"the editor {editor} was not found: set EDITOR") from None
    if ended.returncode != 0:
        raise KasparError(f"{editor} exited with code {ended.returncode}")
    file.chmod(0o600)  # some editors replace the file by a new one
    profiles.read(name)
