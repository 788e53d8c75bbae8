"""Whether brokers prepare transactions is what all of them announce and allow."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from kaspar.client.transactions import TransactionSupport, transaction_support
from kaspar.protocol.api import ApiKey
from kaspar.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kaspar.protocol.schema import Message


class Brokers(Client):
    """Each with the last version of InitProducerId that it announces, and what it says of the setting, if it may."""

    def __init__(self, *brokers: tuple[int, str | ErrorCode | None]) -> None:
        super().__init__("h:9092")
        self.brokers = brokers

    def broker_ids(self) -> list[int]:
        return list(range(len(self.brokers)))

    def request_broker(self, broker_id: int, message: Message, response_class, version=None):  # type: ignore[no-untyped-def]
        last_version, setting = self.brokers[broker_id]
        if isinstance(message, ApiVersionsRequest):
            return ApiVersionsResponse(
                error_code=0,
                api_keys=(ApiVersion(api_key=ApiKey.INIT_PRODUCER_ID, min_version=0, max_version=last_version),),
                finalized_features=(
                    FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=0),
                ),
            )
        assert isinstance(message, DescribeConfigsRequest)
        return DescribeConfigsResponse(results=(_described(message.resources[0].resource_name, setting),))


def _described(broker: str, setting: str | ErrorCode | None) -> DescribeConfigsResult:
    found = DescribeConfigsResourceResult(
        name="transaction.two.phase.commit.enable",
        value=setting if isinstance(setting, str) else None,
        read_only=True,
        is_sensitive=False,
        synonyms=(),
    )
    return DescribeConfigsResult(
        error_code=setting if isinstance(setting, ErrorCode) else ErrorCode.NONE,
        error_message=None,
        resource_type=4,
        resource_name=broker,
        configs=(found,) if found.value is not None else (),
    )


@pytest.mark.parametrize(
    ("brokers", "prepares"),
    [
        ([(6, "true")], True),
        ([(6, "false")], False),
        ([(6, None)], False),
        ([(5, "true")], False),
        ([(6, "true"), (6, "true")], True),
        ([(6, "true"), (6, "false")], False),
        ([(6, "true"), (5, "true")], False),
        ([(6, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)], True),
    ],
)
def test_transactions_are_prepared_where_every_broker_announces_and_allows_it(
    brokers: list[tuple[int, str | ErrorCode | None]], prepares: bool
) -> None:
    assert transaction_support(Brokers(*brokers)) == TransactionSupport(2, prepares)
