"""What commands with the options of argparse4j say about wrong ones, in a form that can be compared."""

import re

from tests.compat.tools.comparing import sentences
from tests.peers.kafka_tools import Done


def complaint(done: Done) -> Done:
    """Without the usage, which argparse4j prints before a complaint, and without the spaces it fills lines with."""
    errors = done.errors.replace("kafka-transactions.sh", "kafka-transactions")
    errors = re.sub(r"usage:.*?(?=\S+:\s+error:)", "", errors, flags=re.DOTALL).partition("\n\nDid you mean")[0]
    text = " ".join(sentences(errors).split()).replace("-- bootstrap", "--bootstrap")
    return Done(done.code, sentences(done.output), text)
