"""The pure parts of kaspar.cli.producing."""
