"""`kaspar produce`: records from lines, JSON, CSV and templates, and their delivery."""
