"""How many tasks run at once, as far as a process on the driver can know.

Spark does not pass it to its planning processes. A session created by kaspar.spark.session() on this machine leaves the
count in the environment, which they inherit; otherwise the number of cores of this machine is used.
"""

import os

from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import Parallelism

CORES = "KASPAR_SPARK_CORES"


def parallelism(options: ReadOptions, *, splits: bool) -> Parallelism:
    """`splits`: whether large partitions are split, unless the options say."""
    given = os.environ.get(CORES, "")
    return Parallelism(
        cores=int(given) if given.isdecimal() and int(given) else len(os.sched_getaffinity(0)),
        packs=given.isdecimal(),
        min_partitions=options.min_partitions,
        max_records_per_partition=options.max_records_per_partition,
        splits=splits if options.split_partitions is None else options.split_partitions,
    )
