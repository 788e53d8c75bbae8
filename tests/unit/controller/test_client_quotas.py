"""AlterClientQuotas, decided as Kafka's ClientQuotaControlManager does."""

import math

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.config import BrokerSettings
from kaspar.controller import Controller
from kaspar.controller.events import AlterClientQuotas, QuotaAlteration
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.store import Create, Delete, Put
from kaspar.quotas.entities import DEFAULT, QuotaEntity

ALICE = (("user", "alice"),)
EMPTY = ClusterImage("cluster")


def alter(
    image: ClusterImage, *alterations: QuotaAlteration, validate_only: bool = False
) -> tuple[ClusterImage, list[int]]:
    controller = Controller(BrokerSettings.of({"node.id": "1"}))
    decision = controller.decide(image, AlterClientQuotas(alterations, validate_only))
    return decision.steps[-1].image if decision.steps else image, [each.outcome.error for each in decision.reply]


def refusal(*alterations: QuotaAlteration) -> str | None:
    controller = Controller(BrokerSettings.of({"node.id": "1"}))
    decision = controller.decide(EMPTY, AlterClientQuotas(alterations))
    (reply,) = decision.reply
    assert reply.outcome.error is ErrorCode.INVALID_REQUEST
    return reply.outcome.message


def test_quotas_are_set_changed_and_removed() -> None:
    image, codes = alter(EMPTY, QuotaAlteration(ALICE, (("producer_byte_rate", 10.0), ("request_percentage", 0.5))))
    assert codes == [0]
    assert image.client_quotas == {QuotaEntity("alice"): {"producer_byte_rate": 10.0, "request_percentage": 0.5}}
    image, _ = alter(image, QuotaAlteration(ALICE, (("producer_byte_rate", 20.0), ("request_percentage", None))))
    assert image.client_quotas == {QuotaEntity("alice"): {"producer_byte_rate": 20.0}}
    image, _ = alter(image, QuotaAlteration(ALICE, (("producer_byte_rate", None), ("never_set", None))))
    assert image.client_quotas == {}


def test_each_change_is_one_node() -> None:
    controller = Controller(BrokerSettings.of({"node.id": "1"}))
    alterations = [
        (QuotaAlteration((("client-id", None), ("user", "a b")), (("producer_byte_rate", 1.0),)), Create),
        (QuotaAlteration((("user", "a b"), ("client-id", None)), (("producer_byte_rate", 2.0),)), Put),
        (QuotaAlteration((("user", "a b"), ("client-id", None)), (("producer_byte_rate", None),)), Delete),
    ]
    image = EMPTY
    for alteration, kind in alterations:
        (step,) = controller.decide(image, AlterClientQuotas((alteration,))).steps
        (operation,) = step.operations
        assert isinstance(operation, kind)
        assert operation.path == "/quotas/client-id=&user=a+b"
        image = step.image


def test_validating_changes_nothing() -> None:
    image, codes = alter(EMPTY, QuotaAlteration(ALICE, (("producer_byte_rate", 10.0),)), validate_only=True)
    assert (image.client_quotas, codes) == ({}, [0])


def test_one_bad_entity_does_not_keep_the_others() -> None:
    image, codes = alter(
        EMPTY,
        QuotaAlteration(ALICE, (("nonsense", 10.0),)),
        QuotaAlteration((("ip", None),), (("connection_creation_rate", 10.0),)),
    )
    assert codes == [ErrorCode.INVALID_REQUEST, 0]
    assert image.client_quotas == {QuotaEntity(ip=DEFAULT): {"connection_creation_rate": 10.0}}


def test_of_an_entity_named_twice_the_first_is_carried_out_and_the_second_refused() -> None:
    image, codes = alter(
        EMPTY,
        QuotaAlteration(ALICE, (("producer_byte_rate", 1.0),)),
        QuotaAlteration(ALICE, (("producer_byte_rate", 2.0),)),
    )
    assert codes == [ErrorCode.INVALID_REQUEST]
    assert image.client_quotas == {QuotaEntity("alice"): {"producer_byte_rate": 1.0}}


@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        ((), "producer_byte_rate", 1.0, "Invalid empty client quota entity"),
        ((("group", "g"),), "producer_byte_rate", 1.0, "Unhandled client quota entity type: group"),
        ((("user", ""),), "producer_byte_rate", 1.0, "Empty user not supported"),
        ((("user", "a"), ("ip", "::1")), "producer_byte_rate", 1.0, "Invalid quota entity combination"),
        ((("ip", "no address"),), "connection_creation_rate", 1.0, "no address is not a valid IP"),
        ((("ip", "::1"),), "producer_byte_rate", 1.0, "Invalid configuration key producer_byte_rate"),
        (ALICE, "connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
        (ALICE, "producer_byte_rate", 0.0, "Quota producer_byte_rate must be greater than 0"),
        (ALICE, "request_percentage", math.nan, "Quota request_percentage must be greater than 0"),
        (ALICE, "producer_byte_rate", 1.5, "producer_byte_rate cannot be a fractional value."),
        (ALICE, "producer_byte_rate", 1e19, "Proposed value for producer_byte_rate is too large for a LONG."),
        ((("ip", "::1"),), "connection_creation_rate", 3e9, "Proposed value for connection_creation_rate is too large"),
    ],
)
def test_refusals_have_kafkas_words(
    entity: tuple[tuple[str, str | None], ...], key: str, value: float, message: str
) -> None:
    assert (refusal(QuotaAlteration(entity, ((key, value),))) or "").startswith(message)


def test_a_key_named_twice_is_refused() -> None:
    twice = QuotaAlteration(ALICE, (("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)))
    assert (refusal(twice) or "").startswith("Ignoring duplicate entity")
