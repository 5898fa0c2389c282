"""What a text asks for: the value that a question wants, orders to a program."""
