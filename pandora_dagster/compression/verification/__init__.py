"""What became of the facts of a text in a shorter one, whoever made it. Pure: no model, no file."""
