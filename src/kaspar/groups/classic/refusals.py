"""JoinGroup and SyncGroup responses with an error."""

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.join_group import JoinGroupResponse
from kaspar.protocol.messages.sync_group import SyncGroupResponse


def join_refused(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, leader="", members=())


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"")
