"""Settings: each declared once, with its name, type, default, bounds and documentation."""
