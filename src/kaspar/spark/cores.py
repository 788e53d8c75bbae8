"""How many tasks run at once, as far as a process on the driver can know it.

Spark does not tell its planning processes. A session made by kaspar.spark.session() on this machine leaves the count in
the environment, which they inherit; otherwise the cores of this machine stand for those of the cluster.
"""

import os

from kaspar.spark.options import ReadOptions
from kaspar.spark.planning import Parallelism

CORES = "KASPAR_SPARK_CORES"


def parallelism(options: ReadOptions, *, splits: bool) -> Parallelism:
    """`splits`: whether large partitions are cut, unless the options say it."""
    told = os.environ.get(CORES, "")
    return Parallelism(
        cores=int(told) if told.isdecimal() and int(told) else len(os.sched_getaffinity(0)),
        packs=told.isdecimal(),
        min_partitions=options.min_partitions,
        max_records_per_partition=options.max_records_per_partition,
        splits=splits if options.split_partitions is None else options.split_partitions,
    )
