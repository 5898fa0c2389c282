"""The store of two users that the tests of the service use too."""

from tests.app.conftest import prepared, root

__all__ = ["prepared", "root"]
