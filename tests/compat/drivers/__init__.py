"""One face over every client: `api.Driver`. Each module here implements it for one client."""
