"""The API of the page: one module for each resource. `kaspar.console.routes` has all of them."""
