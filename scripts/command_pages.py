"""The reference page of each command, from the parser of its options.

A command of `[project.scripts]` has a page if the module of its entry point has `command_options()`, which returns an
argparse parser. The commands of `kaspar` have pages by `click_pages.py`.
"""

import argparse
import importlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.kaspar_pages import index_rows, kaspar_pages
from scripts.page_text import NOTE, cell, code_block

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def command_pages() -> dict[str, str]:
    """The text of each page by its file name, the list of all commands included."""
    parsers = dict(_parsers())
    pages = {f"{name}.md": _page(name, parser) for name, parser in parsers.items()}
    return {"index.md": _index(parsers), **pages, **kaspar_pages()}


def _parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    scripts = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["scripts"]
    for name, entry_point in sorted(scripts.items()):
        module = importlib.import_module(entry_point.partition(":")[0])
        if hasattr(module, "command_options"):
            yield name, module.command_options()


def _index(parsers: dict[str, argparse.ArgumentParser]) -> str:
    lines = [
        "# Commands\n",
        "This page and those of the commands are written by `scripts/command_pages.py` from the commands' own help.\n",
        "Commands with Kafka's names have Kafka's options, output and exit codes; `kaspar` is one command for "
        "everything. Both also work with Apache Kafka brokers. Every one of them prints its options with `--help`.\n",
        "| command | |\n|---|---|",
    ]
    for name, parser in parsers.items():
        lines.append(f"| [{name}]({name}.md) | {cell(_first_sentence(parser.description or ''))} |")
    lines += [
        "\n## kaspar\n",
        "One command for newcomers and for scripts: [a tour](../../cli.md), [its options and exit codes](kaspar.md), "
        "[a task and its call](../../tasks.md) with each tool.\n",
        "| command | |\n|---|---|",
        *index_rows(),
    ]
    return "\n".join(lines) + "\n"


def _page(name: str, parser: argparse.ArgumentParser) -> str:
    parts = [f"# {name}\n", NOTE, *_described(parser)]
    for subcommand, subparser in _subcommands(parser):
        parts += [f"## {name} {subcommand}\n", *_described(subparser)]
    return "\n".join(parts)


def _described(parser: argparse.ArgumentParser) -> list[str]:
    parts = [f"{parser.description}\n"] if parser.description else []
    groups = sorted(parser._action_groups, key=lambda group: group.title == "options")
    parts += [
        f"| {_heading(group)} | |\n|---|---|\n" + "\n".join(rows) + "\n"
        for group in groups
        if (rows := list(_rows(group._group_actions)))
    ]
    if parser.epilog:
        kind, _, text = parser.epilog.partition(": ")
        parts.append(f"Example:\n\n{code_block(text)}" if kind == "Example" else f"{parser.epilog}\n")
    return parts


def _heading(group: argparse._ArgumentGroup) -> str:
    """argparse's own titles are plurals."""
    if any(isinstance(action, argparse._SubParsersAction) for action in group._group_actions):
        return "command"
    return {"options": "option", "positional arguments": "argument"}.get(group.title or "", group.title or "")


def _rows(actions: Iterable[argparse.Action]) -> Iterator[str]:
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield f"| `{choice.dest}` | {cell(choice.help or '')} |"
        elif action.help is not argparse.SUPPRESS and "--help" not in action.option_strings:
            yield f"| {_flags(action)} | {cell(_help(action))} |"


def _flags(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    value = "" if action.nargs == 0 else f" {_metavar(action)}"
    return ", ".join(f"`{flag}{value}`" for flag in action.option_strings).replace("|", "\\|")


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _help(action: argparse.Action) -> str:
    return (action.help or "") % {**vars(action), "prog": ""}


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """With those of subcommands, named from the first to the last word."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, subparser in action.choices.items():
                yield name, subparser
                yield from ((f"{name} {deeper}", each) for deeper, each in _subcommands(subparser))


def _first_sentence(text: str) -> str:
    return re.split(r"\.\s", text, maxsplit=1)[0].rstrip(".")
