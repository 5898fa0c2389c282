"""A page that was read, as the record of a visit and as a text for users."""
