"""Adopts the folder of a stopped Apache Kafka node (KRaft): reads its metadata log, and takes the folder over.

- `metadata_log`: the batches of snapshot and segments; `frames`, `records`, `security_records`: their contents
- `state`: the state of the cluster after all records
- `folder`: the contents of the log directories; `unread_groups`: groups of kinds that Kaspar does not have
- `plan`: what is adopted, what is lost, and what prevents the adoption
- `quorum_state`: the file that keeps Kafka from starting on an adopted folder
- `adopting`: carries out the plan, and undoes it
"""
