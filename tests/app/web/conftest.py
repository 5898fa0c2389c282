"""The command line for tests of services over the web."""

from tests.cli.conftest import pandora

__all__ = ["pandora"]
