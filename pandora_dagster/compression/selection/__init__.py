"""The choice of the units that a budget holds, and the text that is written of them."""
