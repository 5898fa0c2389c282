"""Runtimes that answer model calls, each a `ModelRuntime`: the embedded one in `extractive`, model servers in `sglang`."""
