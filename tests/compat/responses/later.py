"""The APIs that Apache Kafka announces and Kaspar does not, with the reason.

A client checks ApiVersions before it uses an API, so it behaves as with an older Kafka.
"""

from collections.abc import Mapping, Sequence

_SHARE = "share groups are not supported yet"
_STREAMS = "the server side of Kafka Streams groups is not supported yet"
_KRAFT = "there is no Raft quorum: metadata is in the embedded store or in ZooKeeper"

_BY_REASON: Mapping[str, Sequence[str]] = {
    _SHARE: (
        *("ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge"),
        *("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState"),
        *("ReadShareGroupStateSummary", "DescribeShareGroupOffsets", "AlterShareGroupOffsets"),
        "DeleteShareGroupOffsets",
    ),
    _STREAMS: ("StreamsGroupHeartbeat", "StreamsGroupDescribe"),
    _KRAFT: ("AddRaftVoter", "RemoveRaftVoter"),
}

APIS_OF_LATER: Mapping[str, str] = {api: reason for reason, apis in _BY_REASON.items() for api in apis}
