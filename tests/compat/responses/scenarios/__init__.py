"""The list of scenarios, by what they ask about."""

from collections.abc import Sequence

from tests.compat.responses.scenario import Scenario
from tests.compat.responses.scenarios import (
    any_groups,
    classic_groups,
    cluster,
    committed_offsets,
    configs,
    connection,
    consumer_groups,
    coordinators,
    credentials,
    features,
    fetch,
    log_dirs,
    offsets,
    one_broker,
    produce,
    producers,
    quotas,
    replicas,
    telemetry,
    topics,
    transactions,
)

SCENARIOS: Sequence[Scenario] = (
    *connection.SCENARIOS,
    *cluster.SCENARIOS,
    *topics.SCENARIOS,
    *produce.SCENARIOS,
    *fetch.SCENARIOS,
    *offsets.SCENARIOS,
    *configs.SCENARIOS,
    *producers.SCENARIOS,
    *coordinators.SCENARIOS,
    *classic_groups.SCENARIOS,
    *consumer_groups.SCENARIOS,
    *any_groups.SCENARIOS,
    *committed_offsets.SCENARIOS,
    *transactions.SCENARIOS,
    *features.SCENARIOS,
    *credentials.SCENARIOS,
    *quotas.SCENARIOS,
    *one_broker.SCENARIOS,
    *replicas.SCENARIOS,
    *log_dirs.SCENARIOS,
    *telemetry.SCENARIOS,
)
