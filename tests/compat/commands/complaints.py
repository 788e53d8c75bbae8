"""What commands with the options of argparse4j say about wrong ones, in a form that can be compared."""

import re
from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet

from tests.compat.tools.comparing import sentences
from tests.peers.kafka_tools import Done


def complaint(done: Done) -> Done:
    """Without the usage, which argparse4j prints before a complaint, and without the spaces it fills lines with."""
    errors = done.errors.replace("kafka-transactions.sh", "kafka-transactions")
    errors = re.sub(r"usage:.*?(?=\S+:\s+error:)", "", errors, flags=re.DOTALL).partition("\n\nDid you mean")[0]
    text = " ".join(sentences(errors).split()).replace("-- bootstrap", "--bootstrap")
    return Done(done.code, sentences(done.output), text)


def first_and_long(cases: Sequence[tuple[str, ...]]) -> list[ParameterSet]:
    """The arguments of tests that wait for a timeout: the first runs always, the others with the long tests."""
    return [
        pytest.param(words, id=" ".join(words), marks=[pytest.mark.long] if number else [])
        for number, words in enumerate(cases)
    ]
