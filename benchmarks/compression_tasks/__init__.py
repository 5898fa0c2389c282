"""One module per row group of the compression benchmark. Each reads data, and gives rows of figures."""
