"""Programs that write the generated files of this repository: `make generate` runs them."""
