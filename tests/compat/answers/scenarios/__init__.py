"""The list of scenarios, by what they ask about."""

from collections.abc import Sequence

from tests.compat.answers.scenario import Scenario
from tests.compat.answers.scenarios import cluster, configs, connection, fetch, offsets, produce, producers, topics

SCENARIOS: Sequence[Scenario] = (
    *connection.SCENARIOS,
    *cluster.SCENARIOS,
    *topics.SCENARIOS,
    *produce.SCENARIOS,
    *fetch.SCENARIOS,
    *offsets.SCENARIOS,
    *configs.SCENARIOS,
    *producers.SCENARIOS,
)
