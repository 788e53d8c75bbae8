"""A cluster on one machine: plans, settings, files. The processes are in tests/integration/cluster/test_up.py."""
