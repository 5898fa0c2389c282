"""Spans of model calls for OpenTelemetry. Importing this room loads nothing of it."""
