"""The pages people read: their links, and what the site makes of them."""
