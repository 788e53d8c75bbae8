"""The folder of a stopped Apache Kafka node (KRaft): what its metadata log says, and how Kaspar takes it over.

- `metadata_log`: the batches of snapshot and segments; `frames`, `records`, `security_records`: what is in them
- `state`: the cluster that the records add up to
- `folder`: what lies in the log directories; `unread_groups`: groups of kinds that Kaspar does not have
- `plan`: what is taken over, what is lost, and what forbids it
- `quorum_state`: the file by which Kafka is kept from starting on a folder that has a new owner
- `adopting`: carries it out, and takes it back
"""
