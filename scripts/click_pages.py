"""The reference pages of `kaspar`: one for each of its commands, from click's declarations.

Options that all commands of a page have, such as those that choose the cluster, are listed once at its end.
"""

from collections.abc import Iterator

import click

from scripts.page_text import NOTE, cell, code_block

Named = tuple[str, click.Command]


def click_pages(group: click.Group) -> dict[str, str]:
    """The text of each page by its file name."""
    context = click.Context(group, info_name=group.name)
    commands = [(name, _required(group, context, name)) for name in group.list_commands(context)]
    return {f"{group.name}-{name}.md": _page(f"{group.name} {name}", command) for name, command in commands}


def click_index(group: click.Group) -> list[str]:
    """The rows of a table of its commands."""
    context = click.Context(group, info_name=group.name)
    return [
        f"| [{group.name} {name}]({group.name}-{name}.md) | "
        f"{cell(_required(group, context, name).get_short_help_str(limit=200))} |"
        for name in group.list_commands(context)
    ]


def _required(group: click.Group, context: click.Context, name: str) -> click.Command:
    command = group.get_command(context, name)
    assert command is not None
    return command


def _page(name: str, command: click.Command) -> str:
    leaves = [each for each in _all_commands(name, command) if not isinstance(each[1], click.Group)]
    shared = _shared_rows(leaves) if len(leaves) > 1 else []
    parts = [f"# {name}\n", NOTE, *_described(name, command, shared)]
    for path, each in _all_commands(name, command):
        if each is not command:
            parts += [f"## {path}\n", *_described(path, each, shared)]
    if shared:
        parts += ["## Options of all these commands\n", _table("option", shared)]
    return "\n".join(parts)


def _all_commands(name: str, command: click.Command) -> Iterator[Named]:
    """The command and those below it, with their whole names."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for each in command.list_commands(context):
            yield from _all_commands(f"{name} {each}", _required(command, context, each))


def _shared_rows(leaves: list[Named]) -> list[str]:
    rows = [_option_rows(command) for _, command in leaves]
    return [row for row in rows[0] if all(row in others for others in rows)]


def _described(name: str, command: click.Command, shared: list[str]) -> list[str]:
    context = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"{' '.join(paragraph.split())}\n" for paragraph in (command.help or "").split("\n\n")]
    parts.append(code_block(usage))
    if isinstance(command, click.Group):
        rows = [
            f"| `{each}` | {cell(_required(command, context, each).get_short_help_str(limit=200))} |"
            for each in command.list_commands(context)
        ]
        parts.append(_table("command", rows))
    if own := [row for row in _option_rows(command) if row not in shared]:
        parts.append(_table("option", own))
    if command.epilog:
        parts.append(code_block(command.epilog.strip("\n")))
    return parts


def _option_rows(command: click.Command) -> list[str]:
    context = click.Context(command)
    rows = []
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            value = "" if option.is_flag or option.count else f" {option.make_metavar(context)}"
            flags = ", ".join(f"`{flag}{value}`" for flag in (*option.opts, *option.secondary_opts))
            rows.append(f"| {flags.replace('|', chr(92) + '|')} | {cell(option.help or '')} |")
    return rows


def _table(title: str, rows: list[str]) -> str:
    return f"| {title} | |\n|---|---|\n" + "\n".join(rows) + "\n"
