"""Allocates blocks of producer ids."""

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerId
from kaspar.controller.decision import Decision, Draft
from kaspar.controller.events import AllocateProducerIds, ProducerIdBlock
from kaspar.metadata.image import ClusterImage

PRODUCER_IDS_PER_BLOCK = 1000
_MAX_PRODUCER_ID = (1 << 63) - 1


def allocate_producer_ids(image: ClusterImage, event: AllocateProducerIds) -> Decision[ProducerIdBlock]:
    """The block is stored as allocated before it is returned, so no id is ever allocated twice, whatever crashes."""
    first = image.next_producer_id
    if first > _MAX_PRODUCER_ID - PRODUCER_IDS_PER_BLOCK:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "Exhausted all producer ids")
    draft = Draft(image)
    draft.put_next_producer_id(first + PRODUCER_IDS_PER_BLOCK)
    return draft.decide(ProducerIdBlock(ProducerId(first), PRODUCER_IDS_PER_BLOCK))
