"""The reference pages of `kaspar`: one for each of its commands, from the command's own help."""

import copy
import re
from collections.abc import Iterator

import click

from kaspar.cli import failures
from kaspar.cli.main import SECTIONS, kaspar

_NOTE = "This page is written by `scripts/kaspar_pages.py` from the command's own help.\n"
_CLUSTER_OPTIONS = ("servers", "profile", "config_file", "settings")
_OUTPUT_OPTIONS = ("output_format", "no_headers", "no_color")
_MARKDOWN = re.compile(r"([|*_`\[\]<\\])")


def kaspar_pages() -> dict[str, str]:
    """The text of each page by its file name, that of `kaspar` itself included."""
    pages = {"kaspar.md": _overview()}
    for name, command in _top_level():
        pages[f"kaspar-{name}.md"] = "\n".join([f"# kaspar {name}\n", _NOTE, *_described(command, f"kaspar {name}")])
    return pages


def index_rows() -> list[str]:
    """For the list of all commands."""
    return [
        f"| [kaspar {name}](kaspar-{name}.md) | {_prose(entry.help.rstrip('.'))} |"
        for entries in SECTIONS.values()
        for name, entry in entries.items()
    ]


def _top_level() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(kaspar, info_name="kaspar")
    for name in kaspar.list_commands(context):
        command = kaspar.get_command(context, name)
        assert command is not None
        yield name, command


def _overview() -> str:
    parts = ["# kaspar\n", _NOTE, f"{kaspar.help}\n", "A tour: [the command kaspar](../../cli.md).\n"]
    for title, entries in SECTIONS.items():
        rows = [f"| [kaspar {name}](kaspar-{name}.md) | {_prose(entry.help)} |" for name, entry in entries.items()]
        parts += [f"## {title}\n", "| command | |\n|---|---|\n" + "\n".join(rows) + "\n"]
    listing = next(command for name, command in _top_level() if name == "topic")
    assert isinstance(listing, click.Group)
    options = [each for each in listing.commands["list"].params if isinstance(each, click.Option)]
    parts += [
        "## Options of the cluster\n",
        "Every command that talks to a cluster has them.\n",
        _table("option", (_option_row(each) for each in options if each.name in _CLUSTER_OPTIONS)),
        "## Options of the output\n",
        _table("option", (_option_row(each) for each in options if each.name in _OUTPUT_OPTIONS)),
        "## Exit codes\n",
        (failures.__doc__ or "").partition("\n\n")[2],
    ]
    return "\n".join(parts)


def _described(command: click.Command, path: str) -> list[str]:
    parts = [_usage(command, path)]
    parts += [f"{_prose(paragraph)}\n" for paragraph in (command.help or "").replace("\b", "").split("\n\n")]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    names = {each.name for each in options}
    common = {*(_CLUSTER_OPTIONS if "profile" in names else ()), *(_OUTPUT_OPTIONS if "no_headers" in names else ())}
    own = [each for each in options if each.name not in common]
    if own:
        parts.append(_table("option", map(_option_row, own)))
    if common:
        links = [
            f"the [{kind}](kaspar.md#options-of-the-{kind})"
            for kind, has in (("cluster", "profile" in common), ("output", "no_headers" in common))
            if has
        ]
        parts.append(f"Also the options of {' and of '.join(links)}.\n")
    if command.epilog:
        parts.append(_examples(command.epilog))
    if isinstance(command, click.Group):
        for name, subcommand in sorted(command.commands.items()):
            if subcommand.epilog == command.epilog:
                subcommand = _without_epilog(subcommand)
            parts += [f"## {path} {name}\n", *_described(subcommand, f"{path} {name}")]
    return parts


def _without_epilog(command: click.Command) -> click.Command:
    """Examples of a whole group are shown once."""
    shown = copy.copy(command)
    shown.epilog = None
    return shown


def _usage(command: click.Command, path: str) -> str:
    pieces = command.collect_usage_pieces(click.Context(command, info_name=path))
    return f"    {path} {' '.join(pieces)}\n"


def _examples(epilog: str) -> str:
    """Lines under a heading such as "examples:" keep their form; the rest is prose."""
    blocks = []
    for paragraph in epilog.strip().split("\n\n"):
        head, _, rest = re.sub(r"^(Example:) (?=kaspar )", r"\1\n  ", paragraph).partition("\n")
        if rest.startswith("  "):
            lines = "\n".join(f"    {line.strip()}" for line in rest.splitlines())
            blocks.append(f"{head[:1].upper()}{head[1:]}\n\n{lines}\n")
        else:
            blocks.append(f"{_prose(paragraph)}\n")
    return "\n".join(blocks)


def _option_row(option: click.Option) -> str:
    value = "" if option.is_flag else f" {option.make_metavar(click.Context(click.Command('x')))}"
    flags = ", ".join(f"`{flag}{value}`" for flag in option.opts).replace("|", "\\|")
    return f"| {flags} | {_prose(option.help or '')} |"


def _table(title: str, rows: Iterator[str]) -> str:
    return f"| {title} | |\n|---|---|\n" + "\n".join(rows) + "\n"


def _prose(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
