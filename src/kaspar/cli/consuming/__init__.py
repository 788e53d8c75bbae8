"""`kaspar consume`: start and stop positions, selection of records, and output formats."""
