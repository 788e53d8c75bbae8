"""Client telemetry (KIP-714): which metrics clients are asked for, and what becomes of those they push."""
