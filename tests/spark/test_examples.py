"""The examples do what their page says, on a broker and a session that others use, too."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.spark import click_counts, daily_folders, orders_with_customers
from examples.spark.postgresql import postgresql
from examples.spark.stage import Stage
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.postgresql import require_postgresql
from tests.spark.topics import Topics

ROOT = Path(__file__).parents[2]
SECONDS = 2.0

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def stage(spark: SparkSession, broker: KasparProcess, tmp_path: Path) -> Stage:
    return Stage(spark, broker.bootstrap, tmp_path, seconds=SECONDS)


def test_a_day_of_a_topic_comes_back_from_its_folder(
    stage: Stage, topics: Topics, capsys: pytest.CaptureFixture[str]
) -> None:
    clicks, again = topics.create(), topics.create()
    assert daily_folders.run(stage, clicks=clicks, again=again)
    days = {path.name for path in (stage.folder / "clicks").glob("day=*")}
    assert len(days) >= daily_folders.DAYS
    came_back = topics.values(again)
    assert 0 < len(came_back) < len(topics.values(clicks))
    assert f"are back in the topic {again}" in capsys.readouterr().out


def test_clicks_are_counted_once_though_the_query_was_stopped(stage: Stage, topics: Topics) -> None:
    clicks, counts = topics.create(), topics.create()
    assert click_counts.run(stage, clicks=clicks, counts=counts)
    assert topics.values(counts)


def test_orders_find_their_customers_in_a_table(
    stage: Stage, topics: Topics, capsys: pytest.CaptureFixture[str]
) -> None:
    unless_missing(require_postgresql)
    orders, whole = topics.create(), topics.create()
    with postgresql() as database:
        assert orders_with_customers.run(stage, database, orders=orders, whole=whole)
    assert len(topics.values(whole)) == len(topics.values(orders))
    printed = capsys.readouterr().out
    signed_up = orders_with_customers.FIRST_CUSTOMERS + 2 * orders_with_customers.NEWCOMERS
    assert f"there are {signed_up} now" in printed


@pytest.mark.parametrize("name", ["daily_folders", "click_counts", "orders_with_customers"])
def test_help_says_what_an_example_does(name: str) -> None:
    command = [sys.executable, "-m", f"examples.spark.{name}", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    module = sys.modules[f"examples.spark.{name}"]
    assert module.__doc__ is not None
    assert module.__doc__.splitlines()[0] in done.stdout
    for argument in ("--bootstrap", "--seconds", "--rate"):
        assert argument in done.stdout


def test_an_example_ends_by_itself_with_a_broker_of_its_own() -> None:
    command = [sys.executable, "-m", "examples.spark.daily_folders", "--seconds", "2", "--master", "local[1]"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert "are back in the topic clicks-again" in done.stdout
