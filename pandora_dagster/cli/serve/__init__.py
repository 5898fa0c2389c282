"""Commands that keep running: model servers, the API, Dagster."""
