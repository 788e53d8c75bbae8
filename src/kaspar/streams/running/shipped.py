"""Sends a program to Spark's workers: pickled once, when it starts, and unpickled once in each worker.

Every batch contains the same bytes, which are few. A worker caches the last programs that it has unpickled.
"""

import functools
import hashlib
from dataclasses import dataclass, field

from kaspar.streams.topology.context import TaskSettings
from kaspar.streams.topology.plan import SubTopology


@dataclass(frozen=True, slots=True)
class Program:
    """The part of the program that a task needs."""

    plan: SubTopology
    settings: TaskSettings


@dataclass(frozen=True, slots=True)
class ShippedProgram:
    """A pickled program. Copies of it compare equal."""

    digest: bytes
    pickled: bytes = field(repr=False, compare=False)

    @classmethod
    def of(cls, plan: SubTopology, settings: TaskSettings) -> "ShippedProgram":
        from pyspark import cloudpickle  # functions of the program's own script are pickled by value

        pickled: bytes = cloudpickle.dumps(Program(plan, settings))  # type: ignore[no-untyped-call]
        return cls(hashlib.blake2b(pickled, digest_size=16).digest(), pickled)

    def load(self) -> Program:
        return _load(self)


@functools.lru_cache(maxsize=8)
def _load(shipped: ShippedProgram) -> Program:
    import pickle

    program: Program = pickle.loads(shipped.pickled)
    return program
