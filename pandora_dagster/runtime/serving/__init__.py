"""The model servers of this machine: what is started for them, whether they fit its memory, and who keeps them up."""
