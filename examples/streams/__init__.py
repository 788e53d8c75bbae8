"""Streams programs: each is a file that runs by itself, with a generator of the events that it reads."""
