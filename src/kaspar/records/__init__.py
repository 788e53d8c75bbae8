"""Record batches, format v2: reading, checking, building and compressing them."""
