"""The process that works on large schemas (`python -m kaspar.registry.schema_process`).

A schema of a megabyte keeps an interpreter busy for seconds, and its garbage collector stops all threads while it
traverses the parsed schema, so this is done in a separate process. Schemas are untrusted input: a task has limits of
memory and CPU time, and the process ends when one exceeds them (kaspar.base.limited_process).

Requests and responses are msgpack: a Task, and its texts or a Refusal.
"""

from typing import Final

import msgspec

from kaspar.base.limited_process import Limits, serve
from kaspar.registry.schema_work import Refusal, SchemaWork, Task, Unparseable

LIMITS: Final = Limits(cpu_s=10, memory_bytes=2 << 30, idle_s=60.0)


class Outcome(msgspec.Struct, frozen=True):
    texts: tuple[str, ...] = ()
    refusal: Refusal | None = None


def _outcome(work: SchemaWork, task: Task) -> Outcome:
    try:
        return Outcome(work.do(task))
    except Unparseable as problem:
        return Outcome(refusal=problem.refusal)


def main() -> None:
    work = SchemaWork()
    decoder = msgspec.msgpack.Decoder(Task)
    serve(lambda request: msgspec.msgpack.encode(_outcome(work, decoder.decode(request))), LIMITS)


if __name__ == "__main__":
    main()
