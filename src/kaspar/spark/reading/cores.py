"""The number of tasks that run at once, as far as a process on the driver can know it.

Spark does not pass it to its planning processes. A session created by kaspar.spark.session() on this machine stores the
number in the environment, which they inherit. Otherwise it is the number of cores of this machine.
"""

import os

from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import Parallelism

CORES = "KASPAR_SPARK_CORES"


def parallelism(options: ReadOptions, *, splits: bool) -> Parallelism:
    """The desired number of tasks. `splits`: whether large partitions are split if the options do not say."""
    given = os.environ.get(CORES, "")
    return Parallelism(
        cores=int(given) if given.isdecimal() and int(given) else len(os.sched_getaffinity(0)),
        packs=given.isdecimal(),
        min_partitions=options.min_partitions,
        max_records_per_partition=options.max_records_per_partition,
        splits=splits if options.split_partitions is None else options.split_partitions,
    )
