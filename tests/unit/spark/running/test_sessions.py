"""The settings of a session: what it gets by itself, for which master."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kaspar.spark.running.sessions import LOG_SETTINGS, cores_of, settings_for


def test_importing_the_package_loads_nothing_of_pyspark() -> None:
    """Python workers of Spark import it for every task."""
    program = "import sys, kaspar.spark; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"pyspark", "pandas", "pyarrow"} & set(done.stdout.split())


def test_package_does_not_take_any_name() -> None:
    import kaspar.spark

    assert callable(kaspar.spark.session)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = kaspar.spark.no_such_name


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[3]", 3), ("local[3,2]", 3), ("local[3, 2]", 3)])
def test_master_gives_the_cores(master: str, cores: int) -> None:
    assert cores_of(master) == cores


@pytest.mark.parametrize("master", ["local[*]", "spark://one:7077", "yarn", "k8s://https://one:6443"])
def test_this_machine_stands_for_a_cluster(master: str) -> None:
    assert cores_of(master) == len(os.sched_getaffinity(0))


def test_shuffles_have_as_many_partitions_as_there_are_cores() -> None:
    assert settings_for("local[3]", cores=3)["spark.sql.shuffle.partitions"] == "3"


@pytest.mark.parametrize("master", ["local", "local[*]", "spark://127.0.0.1:7077", "spark://localhost:7077"])
def test_driver_of_this_machine_listens_on_loopback(master: str) -> None:
    settings = settings_for(master, cores=2)
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"


@pytest.mark.parametrize("master", ["spark://one:7077", "spark://10.0.0.1:7077", "yarn", "k8s://https://one:6443"])
def test_driver_of_a_cluster_is_reached_by_its_executors(master: str) -> None:
    assert not {"spark.driver.host", "spark.driver.bindAddress"} & settings_for(master, cores=2).keys()


@pytest.mark.parametrize(
    ("master", "hadoop", "ours"),
    [
        ("local[2]", False, True),
        ("spark://127.0.0.1:7077", False, True),
        ("local[2]", True, False),
        ("yarn", False, False),
    ],
)
def test_checkpoints_are_written_our_way_on_local_disks_alone(master: str, hadoop: bool, ours: bool) -> None:
    settings = settings_for(master, cores=2, hadoop=hadoop)
    assert ("spark.sql.streaming.checkpointFileManagerClass" in settings) is ours


def test_log_settings_are_where_the_driver_looks_for_them() -> None:
    options = settings_for("local[2]", cores=2)["spark.driver.defaultJavaOptions"]
    assert LOG_SETTINGS.is_file()
    assert Path(options.rstrip('"').partition("file://")[2]) == LOG_SETTINGS


@pytest.mark.parametrize(
    ("master", "this_python", "ours"),
    [("local[2]", True, True), ("local[2]", False, False), ("spark://127.0.0.1:7077", True, False)],
)
def test_workers_that_surely_have_this_package_run_its_daemon(master: str, this_python: bool, ours: bool) -> None:
    settings = settings_for(master, cores=2, this_python=this_python)
    assert ("spark.python.daemon.module" in settings) is ours
