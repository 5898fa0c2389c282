"""The flow of a turn: the table of phases, and how one of them runs."""
