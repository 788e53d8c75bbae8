"""The messages view: reading, filtering, following, producing and replaying the records of a topic."""
