"""SGLang's OpenAI-compatible servers behind the `ModelRuntime` port. Importing this package loads no client library."""
