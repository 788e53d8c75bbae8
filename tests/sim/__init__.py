"""A seeded simulation of a whole cluster: real brokers on virtual time, a simulated network, disks and ZooKeeper."""
