"""The fixtures of the phases' tests, for archives of real turns."""

from tests.phases.conftest import rig

__all__ = ["rig"]
