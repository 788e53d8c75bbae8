"""Options of the commands that Kafka implements with argparse4j: kafka-storage, kafka-cluster, kafka-features and
others.

Their rules differ from those of the other commands (`command_line.KafkaOptions`): help goes to standard output, and a
wrong option ends the command with the usage, an error message of argparse4j, and exit code 1. Flags are declared in
Kafka's order, such as `--config`, `-c`, because error messages list them all.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from kaspar.tools.command_line import FAILED, command_words
from kaspar.tools.java_numbers import parse_long


class Argparse4jOptions(argparse.ArgumentParser):
    """`help_code` is the exit code after `--help`, which differs between Kafka's commands. The parsers of subcommands
    inherit it."""

    def __init__(self, prog: str, *, help_code: int = 0, **others: Any) -> None:
        super().__init__(prog, add_help=False, **others)
        self.help_code = help_code
        self._words: Sequence[str] = ()
        self.add_argument("-h", "--help", action=_Help, nargs=0, help="show this help message and exit")

    def add_subparsers(self, **others: Any) -> Any:
        parser_class = partial(type(self), help_code=self.help_code)
        return super().add_subparsers(parser_class=parser_class, **others)  # type: ignore[call-overload]

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self._words = command_words(args)
        options, unknown = super().parse_known_args(self._words, namespace)
        if unknown:
            self.report(f"unrecognized arguments: '{unknown[0]}'")
        return options, unknown

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if isinstance(action, argparse._SubParsersAction) and arg_strings:
            arg_strings = [self._completed(arg_strings[0]), *arg_strings[1:]]
        return super()._get_values(action, arg_strings)

    def _completed(self, command: str) -> str:
        """The full name of a subcommand, which may be abbreviated like an option."""
        matching = [each for each in self._subcommands() if each.startswith(command)]
        if command in matching or not matching:
            return command
        if len(matching) > 1:
            self.report(f"ambiguous command: {command} could match {', '.join(matching)}")
        return matching[0]

    def error(self, message: str) -> NoReturn:
        self.report(self._sentence(message))

    def report(self, sentence: str) -> NoReturn:
        """End the command because of wrong options."""
        self.print_usage(sys.stderr)
        print(f"{self.prog.split()[0]}: error: {sentence}", file=sys.stderr)
        sys.exit(FAILED)

    def _sentence(self, message: str) -> str:
        """argparse4j's error message for one of argparse."""
        subcommands = self._subcommands()
        if message.startswith("the following arguments are required: "):
            # argparse4j reports an unknown option when it reaches it; argparse first reports missing arguments.
            if (unknown := self._unknown_option()) is not None and {*subcommands}.isdisjoint(self._words):
                return f"unrecognized arguments: '{unknown}'"
            missing = message.partition(": ")[2].split(", ")
            if any(not each.startswith("-") for each in missing):
                return "too few arguments"
            return f"argument {missing[0]} is required"
        if subcommands and ": invalid choice: " in message:
            word = next(word for word in self._words if repr(word) in message)
            choices = ", ".join(f"'{each}'" for each in subcommands)
            return f"invalid choice: '{word}' (choose from {choices})"
        return message

    def _subcommands(self) -> list[str]:
        actions = (each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        return [name for action in actions for name in action.choices]

    def _unknown_option(self) -> str | None:
        known = self._option_string_actions
        for word in self._words:
            flag = word.partition("=")[0]
            if flag.startswith("-") and not any(each.startswith(flag) for each in known):
                return word
        return None


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        assert isinstance(parser, Argparse4jOptions)
        parser.print_help()
        sys.exit(parser.help_code)


def to_integer(text: str) -> int:
    """The type of a 32-bit integer option."""
    return _to_number(text, "Integer", 32)


def to_long(text: str) -> int:
    return _to_number(text, "Long", 64)


def to_short(text: str) -> int:
    return _to_number(text, "Short", 16)


def _to_number(text: str, kind: str, bits: int) -> int:
    try:
        number = parse_long(text)
    except ValueError:
        reason = f'For input string: "{text}"'
    else:
        if -(1 << bits - 1) <= number < 1 << bits - 1:
            return number
        reason = f'Value out of range. Value:"{text}" Radix:10' if kind == "Short" else f'For input string: "{text}"'
    raise argparse.ArgumentTypeError(f"could not convert '{text}' to {kind} ({reason})")
