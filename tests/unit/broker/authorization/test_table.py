"""The table of permissions: no API without an entry, and the entries are what the guards check."""

from kaspar.broker.authorization.table import guards
from kaspar.broker.served_apis import SERVED
from kaspar.broker.services import CurrentSettings
from kaspar.config import BrokerSettings
from kaspar.protocol.api_keys import ApiKey

FOR_EVERYONE = {
    *(ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS),
    *(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY),
}
FOR_OWNERS_AND_RENEWERS = {ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}


def test_every_api_that_is_served_is_in_the_table() -> None:
    table = guards(CurrentSettings(BrokerSettings.of({"node.id": "1"})))
    assert SERVED.keys() <= table.keys()
    assert {key for key, guard in table.items() if not guard.needs} == FOR_EVERYONE | FOR_OWNERS_AND_RENEWERS
