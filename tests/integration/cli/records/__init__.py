"""The commands of `kaspar` that talk to a cluster, on one broker that all tests of this folder share."""
