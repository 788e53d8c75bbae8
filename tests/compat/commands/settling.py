"""Waits until a broker has applied what was changed before.

A broker of Apache Kafka learns of a change of the cluster's metadata a moment after the controller has acknowledged it.
It applies changes in their order: once it shows a later one, it has the earlier ones. Some of its parts (the
authorizer, credentials, tokens) follow after the part that shows quotas, but before the next batch of changes; hence
two changes, one after the other.
"""

import itertools

from kaspar.client.admin.quotas import QuotaFilter, alter_client_quotas, describe_client_quotas
from kaspar.client.admin.session import Admin
from kaspar.quotas.entities import PRODUCER_BYTE_RATE, USER, QuotaEntity
from tests.compat.commands.places import Place
from tests.peers.kafka import ApacheKafka
from tests.peers.observed import wait_until
from tests.peers.process import BrokerProcess

_NOBODY = QuotaEntity(user="nobody-but-a-mark")
_numbers = itertools.count(1)


def settle(place: Place) -> None:
    settle_broker(place.broker)


def settle_broker(broker: BrokerProcess) -> None:
    if not isinstance(broker, ApacheKafka):
        return
    with Admin(broker.bootstrap) as admin:
        _change_and_wait(admin)
        _change_and_wait(admin)


def _change_and_wait(admin: Admin) -> None:
    mark = {PRODUCER_BYTE_RATE: float(next(_numbers))}
    shown = [QuotaFilter.of(USER, _NOBODY.user)]
    assert alter_client_quotas(admin, {_NOBODY: mark}) == {_NOBODY: None}
    wait_until(lambda: describe_client_quotas(admin, shown, strict=True) == {_NOBODY: mark}, "the mark is shown")
