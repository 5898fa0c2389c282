"""Any server with OpenAI's HTTP API behind the `ModelRuntime` port, by the client code of `runtime.sglang`."""
