"""The pair of brokers with an authorizer. What 127.0.0.1 may do, an ACL says: a super user would be everybody."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.compat.responses.api import Api
from tests.compat.responses.authorization.acls import HOST, everything
from tests.compat.responses.conftest import SETTINGS, Pair
from tests.compat.responses.play import Stage
from tests.compat.responses.scenario import Scenario
from tests.peers.kafka import ApacheKafka
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker
from tests.peers.process import BrokerProcess
from tests.peers.telemetry_receiver import telemetry_receiver

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Until the first ACLs are there, which allow everything to one host, and so nothing to others.
    "allow.everyone.if.no.acl.found": "true",
}
_FIRST_ACLS = Scenario("what the other steps may do", Api.CREATE_ACLS, everything(HOST))


@pytest.fixture(scope="session")
def secured_pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    same = request.config.getoption("--against") == "kafka"
    folder = tmp_path_factory.mktemp("authorization")
    unless_missing(telemetry_receiver)
    settings = {**SETTINGS, **AUTHORIZER}
    with ExitStack() as running:
        kafka = running.enter_context(ApacheKafka(folder / "kafka", overrides=settings, plugins=telemetry_receiver()))
        subject: BrokerProcess = (
            ApacheKafka(folder / "subject", overrides=settings, plugins=telemetry_receiver())
            if same
            else ObservedBroker(folder / "subject", overrides=settings)
        )
        running.enter_context(subject)
        beside = running.enter_context(ThreadPoolExecutor(max_workers=1))
        stages = Stage(kafka), Stage(subject)
        for stage in stages:
            stage.wait_ready()
            stage.play(_FIRST_ACLS, Api.CREATE_ACLS.last)
        yield Pair(*stages, same, 0, beside)
