"""One module for each API. broker/wiring.py says which are served, at which versions, and what each is given."""
