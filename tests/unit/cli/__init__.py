"""The commands of `kaspar`."""
