"""Faults against real broker processes; afterwards every acknowledged record is counted. docs/faults.md lists them."""
