"""The other phases, a module each."""
