"""The proof of the product, by kind: unit, property, integration, compat, chaos. `python -m tests.run` runs all."""
