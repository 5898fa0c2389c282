"""What a query asks for, and what the sentences of a user state: rules over their words alone."""
