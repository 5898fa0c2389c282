"""Reading pages of the web: what is composed for it, and the service that the commands call."""
