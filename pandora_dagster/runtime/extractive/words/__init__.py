"""Words and values as the embedded runtime compares them."""
