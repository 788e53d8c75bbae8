"""Transactions, through every client that has them."""
