"""The program behind docs/scale.md, on a cluster of three brokers and another store."""

import asyncio
from pathlib import Path

from bench import report
from bench.scale.scenario import Line, Scenario, Size
from tests.unit.metadata.stores import sqlite


async def _measured(folder: Path) -> list[Line]:
    async with sqlite(folder) as store:
        return await Scenario(Size(brokers=5, topics=60, partitions_of_each=110), store.connect).run()


def test_every_measurement_changes_what_it_says_and_brokers_that_follow_have_the_same_image(tmp_path: Path) -> None:
    lines = asyncio.run(_measured(tmp_path))
    creation, one_more, single, many, death, start, whole = lines
    assert "60 topics with 6,600 partitions" in creation.title
    assert creation.traffic.written_bytes > 20 * 6600
    assert one_more.traffic.transactions == single.traffic.transactions == 1
    assert one_more.delta_bytes is not None
    assert whole.delta_bytes is not None
    assert one_more.delta_bytes < whole.delta_bytes / 50
    assert single.traffic.written_bytes < many.traffic.written_bytes
    assert death.traffic.transactions >= 1
    assert start.traffic.read_bytes > creation.traffic.written_bytes / 3


def test_the_page_has_a_place_for_the_results(tmp_path: Path) -> None:
    page = tmp_path / "scale.md"
    page.write_text((Path(__file__).parents[3] / "docs" / "scale.md").read_text())
    report.write_into(page, "scale", "figures")
    assert "figures" in page.read_text()
