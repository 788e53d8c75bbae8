"""What is compared: topologies with inputs, in groups of which each is a test."""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from tests.streams.compat.differences import cache_for, stores_for
from tests.streams.compat.generators import Steps, inputs, random_steps
from tests.streams.compat.kafka_streams import Job
from tests.streams.compat.topologies import DEFINITIONS, OPERATORS, TABLE_OPERATORS, Definition, chain, table_chain

Group: TypeAlias = Callable[[], list[Job]]
MakeChain: TypeAlias = Callable[[Sequence[str]], Definition]
LONG_CHAINS = 40


def all_inputs(topology: str) -> list[Job]:
    definition = DEFINITIONS[topology]
    return [_job(definition, name, steps) for name, steps in inputs(definition.topics).items()]


def all_inputs_with_rocksdb(topology: str) -> list[Job]:
    return [replace(job, stores="RocksDB") for job in all_inputs(topology)]


def pairs(operator: str) -> list[Job]:
    """A random input for each chain of this operator of streams and another one."""
    return _pairs(operator, OPERATORS, chain)


def pairs_of_tables(operator: str) -> list[Job]:
    """The same for an operator of tables."""
    return _pairs(operator, TABLE_OPERATORS, table_chain)


def long_chains(operator: str) -> list[Job]:
    """Random chains of three to five operators that begin with this one, each with a random input."""
    return _long_chains(operator, OPERATORS, chain)


def long_chains_of_tables(operator: str) -> list[Job]:
    return _long_chains(operator, TABLE_OPERATORS, table_chain)


def _pairs(operator: str, operators: Collection[str], make_chain: MakeChain) -> list[Job]:
    seed = list(operators).index(operator) * len(operators)
    return [_random_job(make_chain([operator, second]), seed + number) for number, second in enumerate(operators)]


def _long_chains(operator: str, operators: Collection[str], make_chain: MakeChain) -> list[Job]:
    rng = random.Random(operator)
    chains = [make_chain([operator, *rng.choices(list(operators), k=rng.randint(2, 4))]) for _ in range(LONG_CHAINS)]
    jobs = [_random_job(each, rng.randrange(1_000_000)) for each in chains]
    return [replace(job, stores="RocksDB") for job in jobs]


def _random_job(definition: Definition, seed: int) -> Job:
    return _job(definition, f"seed-{seed}", random_steps(definition.topics, seed))


def _job(definition: Definition, name: str, steps: Steps) -> Job:
    return Job(definition.name, name, steps, stores_for(definition.name), cache_for(definition.name))
