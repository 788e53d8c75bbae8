"""Every metric of the reference page, and what moves it on a running broker."""
