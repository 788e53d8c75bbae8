"""A cluster on one machine: starts, watches and stops brokers and ZooKeeper servers as processes of one folder.

- `plan`: the number of brokers and servers, their ports, and what may change at a later start
- `settings`: the settings of each broker
- `folder`: the files of a cluster, and the lock that its supervisor holds
- `child`, `ends_with_parent`, `members`: the processes
- `readiness`, `probes`: whether a member is ready, and a broker's view of its cluster
- `supervisor`, `stopping`: starts all members, restarts members that exit, and stops them in order
- `status`: what runs in a folder, as seen from another process

`kaspar up`, `status` and `stop` (kaspar.cli) and `kaspar.testing.Cluster` are made of these parts.
"""
