"""Which versions clients really use, and what a downgrade of a feature makes of it."""
