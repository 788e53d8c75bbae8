"""The common part of the two commands: reads properties from a file and from options, and runs the command."""

import argparse
from collections.abc import Callable, Mapping, Sequence

from kaspar.tools.argparse4j import Argparse4jOptions
from kaspar.tools.command_line import CommandFailed, command_words, load_properties, run
from kaspar.tools.verifiable.events import TERMINATED, Terminated, report, termination_raises


def run_command(
    parser: Argparse4jOptions,
    argv: Sequence[str] | None,
    *,
    deprecated: str,
    own_properties: Callable[[argparse.Namespace], Mapping[str, str]],
    action: Callable[[argparse.Namespace, Mapping[str, str]], None],
) -> int:
    """Run the command, and return the exit code. `deprecated` is the old name of --command-config. `own_properties`
    take precedence over those of the file.
    """
    words = command_words(argv)
    if not words:
        parser.print_help()
        return 0
    options = parser.parse_args(words)
    properties = {**_file_properties(parser, options, deprecated), **own_properties(options)}
    try:
        with termination_raises():
            return run(lambda: action(options, properties), report)
    except Terminated:
        return TERMINATED


def _file_properties(parser: Argparse4jOptions, options: argparse.Namespace, deprecated: str) -> dict[str, str]:
    old_file = getattr(options, deprecated.removeprefix("--").replace(".", "_"))
    if old_file is not None:
        if options.command_config is not None:
            parser.report(f"Options {deprecated} and --command-config are mutually exclusive.")
        print(
            f"Option {deprecated} has been deprecated and will be removed in a future version. "
            "Use --command-config instead."
        )
    try:
        return load_properties(options.command_config or old_file)
    except CommandFailed as problem:
        parser.report(str(problem))


def text_of(field: str | bytes | None) -> str | None:
    """A key or value as text for JSON."""
    return field.decode(errors="replace") if isinstance(field, bytes) else field
