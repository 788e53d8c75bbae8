"""Spark finds the data source by itself, and finding it costs little."""

import subprocess
import sys

from pyspark.sql.datasource import DataSource

import pyspark_kaspar


def test_the_package_has_what_spark_looks_for() -> None:
    assert issubclass(pyspark_kaspar.DefaultSource, DataSource)
    assert pyspark_kaspar.DefaultSource.name() == "kaspar"


def test_looking_for_it_loads_neither_the_client_nor_arrow() -> None:
    """Spark imports it in every process that looks for sources; and where it fails, Spark finds no other source."""
    program = "import sys, pyspark_kaspar; print({'kaspar.client', 'pyarrow'} & sys.modules.keys() or 'neither')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "neither"
