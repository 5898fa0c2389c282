"""Model servers of this machine: their commands, memory and supervision."""
