"""The pure parts of kaspar.cli.consuming."""
