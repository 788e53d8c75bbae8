"""What every command says about itself: help, version, and options that it does not have, as Kafka's does."""

import re

import pytest

from tests.compat.commands.catalog import COMMANDS, entry_points
from tests.compat.tools.comparing import Command, run_ours, sentences
from tests.peers.kafka_tools import Done, KafkaTools

of_every_command = pytest.mark.parametrize(
    "command", [pytest.param(command, id=name) for name, command in COMMANDS.items() if name in entry_points()]
)
_OPTION = re.compile(r"^(?:\* |  )?(?:-\w(?: \S+)?, )?(--[a-z][\w.-]+)", re.MULTILINE)
_ERROR = re.compile(r"(?<=: ) *error: ")


@of_every_command
def test_help_lists_the_same_options(command: Command, kafka_tools: KafkaTools) -> None:
    theirs, ours = kafka_tools.run(command.kafka_class, "--help"), run_ours(command, "--help")
    assert ours.code == theirs.code
    assert set(_OPTION.findall(ours.output)) == set(_OPTION.findall(theirs.output))
    assert set(_OPTION.findall(ours.errors)) == set(_OPTION.findall(theirs.errors))


@of_every_command
def test_without_options(command: Command, kafka_tools: KafkaTools) -> None:
    theirs, ours = kafka_tools.run(command.kafka_class), run_ours(command)
    assert (ours.code, bool(ours.output), bool(ours.errors)) == (theirs.code, bool(theirs.output), bool(theirs.errors))


@of_every_command
def test_version(command: Command, kafka_tools: KafkaTools) -> None:
    theirs, ours = kafka_tools.run(command.kafka_class, "--version"), run_ours(command, "--version")
    assert ours.code == theirs.code
    if theirs.code == 0:
        assert re.fullmatch(r"\d+\.\d+\.\d+\S*( .*)?\n", ours.output)
    else:
        assert _complaint(ours) == _complaint(theirs)


@of_every_command
def test_unknown_option(command: Command, kafka_tools: KafkaTools) -> None:
    theirs, ours = kafka_tools.run(command.kafka_class, "--zork"), run_ours(command, "--zork")
    assert (ours.code, ours.output, _complaint(ours)) == (theirs.code, theirs.output, _complaint(theirs))


def _complaint(done: Done) -> str:
    """The sentence about the option. argparse4j puts the usage before it, and fills its lines with spaces."""
    text = sentences(done.errors).partition("\n\nDid you mean:")[0]
    start = _ERROR.search(text)
    return " ".join(text[start.start() if start else 0 :].split())
