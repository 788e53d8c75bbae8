"""Partition state: leader, epochs, in-sync replicas and the high watermark."""
