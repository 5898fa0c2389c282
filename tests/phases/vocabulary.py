"""The token counter of the tests."""

from functools import cache

from pandora_dagster.app.composition import open_counter
from pandora_dagster.runtime.token_counter import TokenCounter


@cache
def vocabulary() -> TokenCounter:
    """The shipped vocabulary, read once in a test process: it takes longer than the rest of an application."""
    return open_counter()
