"""Consume, transform, produce: what was read and what was written are committed together, or not at all."""

from tests.compat.clients.api import Consumer, Feature, Protocol, Transformer
from tests.compat.clients.stage import Stage, for_every_client, protocols
from tests.compat.clients.words import wait_for_offsets, wait_for_values
from tests.compat.scenario import eventually

WORDS = [f"word-{number}" for number in range(200)]


def running(transformer: Transformer) -> int:
    """How many transactions it has committed; it must not have given up."""
    seen = transformer.look()
    assert seen.error is None, seen.error
    return seen.committed


def reader(stage: Stage, topic: str) -> Consumer:
    return stage.consumer(stage.new_name("reader"), topic, isolation="read_committed")


@for_every_client(Feature.TRANSACTIONS, variants=protocols)
def test_each_record_is_transformed_once(stage: Stage, protocol: Protocol) -> None:
    source, target = stage.new_topic(partitions=2), stage.new_topic(partitions=2)
    group = stage.new_name("group")
    stage.write(source, *WORDS[:100], partition=0)
    transformer = stage.transformer(group, source, target, stage.new_name("id"), protocol=protocol)
    eventually(lambda: running(transformer) > 0, "the first transaction")
    stage.write(source, *WORDS[100:], partition=1)
    wait_for_values([reader(stage, target)], [word.upper() for word in WORDS])
    wait_for_offsets(stage.admin, group, {(source, 0): 100, (source, 1): 100})


@for_every_client(Feature.TRANSACTIONS)
def test_an_aborted_transaction_commits_no_offsets_either(stage: Stage) -> None:
    source, target = stage.new_topic(), stage.new_topic()
    group = stage.new_name("group")
    stage.write(source, *WORDS)
    transformer = stage.transformer(group, source, target, stage.new_name("id"), abort_first=True)
    wait_for_values([reader(stage, target)], [word.upper() for word in WORDS])
    assert transformer.look().aborted == 1
    wait_for_offsets(stage.admin, group, {(source, 0): len(WORDS)})


@for_every_client(Feature.TRANSACTIONS)
def test_after_a_crash_its_successor_goes_on_without_loss_or_repetition(stage: Stage) -> None:
    source, target = stage.new_topic(partitions=2), stage.new_topic(partitions=2)
    group, transactional_id = stage.new_name("group"), stage.new_name("id")
    process = stage.spare()
    doomed = process.transformer(group, source, target, transactional_id)
    for start in range(0, 100, 10):
        stage.write(source, *WORDS[start : start + 10], partition=start // 10 % 2)
    eventually(lambda: running(doomed) > 0, "the first transaction", seconds=30.0)
    process.kill()
    successor = stage.transformer(group, source, target, transactional_id)
    stage.write(source, *WORDS[100:])
    wait_for_values([reader(stage, target)], [word.upper() for word in WORDS])
    running(successor)
