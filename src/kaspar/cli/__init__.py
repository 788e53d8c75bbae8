"""The kaspar command."""
