"""`kaspar produce`: reads records from lines, JSON, CSV and templates, and delivers them."""
