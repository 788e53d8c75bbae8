"""A cluster on one machine: brokers and ZooKeeper servers as processes of one folder, started, watched and stopped.

- `plan`: how many brokers and servers there are and on which ports, and what may change at a later start
- `settings`: the settings of each broker
- `folder`: the files of a cluster, and the lock that one supervisor has
- `child`, `ends_with_parent`, `members`: the processes
- `readiness`, `probes`: whether a member serves, and what a broker says of its cluster
- `supervisor`, `stopping`: starts all of them, restarts what ends by itself, and stops them in order
- `status`: what runs in a folder, seen from another process

`kaspar up`, `status` and `stop` (kaspar.cli) and `kaspar.testing.Cluster` are made of these parts.
"""
