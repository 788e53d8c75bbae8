"""Exactly once for minutes: transformers of one group are killed again and again, at random moments."""

import random
import time

import pytest

from tests.compat.clients.api import Client, Feature, Protocol, Transformer
from tests.compat.clients.stage import Stage, for_every_client, protocols
from tests.compat.clients.words import wait_for_offsets, wait_for_values
from tests.compat.scenario import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PARTITIONS = 4
ROUNDS = 6
WORDS_A_ROUND = 400


@for_every_client(Feature.TRANSACTIONS, variants=protocols)
def test_no_word_is_lost_or_repeated_by_transformers_that_are_killed(stage: Stage, protocol: Protocol) -> None:
    rng = random.Random(f"{stage.kind.name} {protocol}")
    source, target = stage.new_topic(partitions=PARTITIONS), stage.new_topic(partitions=PARTITIONS)
    group = stage.new_name("group")
    running: dict[str, tuple[Client, Transformer]] = {}

    def start(transactional_id: str) -> None:
        process = stage.spare()
        transformer = process.transformer(group, source, target, transactional_id, protocol=protocol)
        running[transactional_id] = process, transformer

    ids = [stage.new_name("id") for _ in range(2)]
    for transactional_id in ids:
        start(transactional_id)
    words = []
    for number in range(ROUNDS):
        for partition in range(PARTITIONS):
            fresh = [f"word-{number}-{partition}-{each}" for each in range(WORDS_A_ROUND // PARTITIONS)]
            stage.write(source, *fresh, partition=partition)
            words += fresh
        doomed = rng.choice(ids)
        time.sleep(rng.uniform(0, 1.5))  # not waiting for anything: the moment of the kill is random
        running[doomed][0].kill()
        start(doomed)
    reader = stage.consumer(stage.new_name("reader"), target, isolation="read_committed")
    wait_for_values([reader], [word.upper() for word in words], seconds=120.0)
    total = len(words) // PARTITIONS
    wait_for_offsets(stage.admin, group, {(source, partition): total for partition in range(PARTITIONS)})
    eventually(lambda: all(each.look().error is None for _, each in running.values()), "all are well")
