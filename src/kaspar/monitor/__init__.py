"""Monitoring of a cluster from outside: rates, consumer lag, a canary, and the doctor's findings."""
