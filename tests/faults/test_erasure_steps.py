"""An erasure that is cut off at any step is finished by the next one."""

import pytest

from tests.app.test_erasure_service import erased_after_a_stop
from tests.stores.erasure.conftest import prepared, root

__all__ = ["prepared", "root"]


@pytest.mark.parametrize("at", ["turns", "indexes", "records", "runs", "proof"])
def test_an_erasure_cut_off_anywhere_is_finished_by_the_next(root, at):
    """The steps that tests/app/test_erasure_service.py leaves out."""
    erased_after_a_stop(root, at)
