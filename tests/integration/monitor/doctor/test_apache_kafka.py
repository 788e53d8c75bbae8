"""The doctor looks at an Apache Kafka broker as it does at ours."""

from pathlib import Path

import pytest

from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import Admin, raise_first
from kaspar.client.admin.transactions import describe_transactions
from tests.integration.monitor.doctor.mending import examine, found, run, the_only, worrying
from tests.peers.kafka import ApacheKafka
from tests.peers.observed import wait_until


@pytest.mark.long
def test_a_broker_of_apache_kafka_is_looked_at(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path / "kafka") as kafka, Admin(kafka.bootstrap) as admin:
        raise_first(create_topics(admin, [NewTopic("orders", 3, 1)]).values())
        describe_transactions(admin, ["nobody"])  # creates __transaction_state: then transactions are looked at
        wait_until(lambda: worrying(examine(admin, kafka.bootstrap)) == [], "the internal topics have leaders")

        careless = {"unclean.leader.election.enable": "true"}
        raise_first(create_topics(admin, [NewTopic("careless", 1, 1, configs=careless)]).values())
        run(the_only(found(admin, kafka.bootstrap, "unclean-leader-election")))
        assert found(admin, kafka.bootstrap, "unclean-leader-election") == []
