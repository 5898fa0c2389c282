"""What `doctor` says of a DAGSTER_HOME."""

import shutil
from pathlib import Path

from pandora_dagster.app.health import _dagster
from pandora_dagster.settings import load_settings
from pandora_dagster.shipped import shipped_folder

OLD = "run_coordinator:\n  module: dagster.core.run_coordinator\n  class: DefaultRunCoordinator\n"


def test_an_older_home_is_named_with_what_it_lacks(tmp_path: Path) -> None:
    """It works, so it is no fault; a new home, and one that does not exist yet, have no finding."""
    settings = load_settings({"PANDORA_ROOT": str(tmp_path)})
    assert not list(_dagster(settings))
    settings.dagster_home.mkdir()
    (settings.dagster_home / "dagster.yaml").write_text(OLD)
    (finding,) = _dagster(settings)
    assert (
        finding.ok and "run_coordinator" in finding.says and "event_log_storage" in finding.says and "data/dagster.yaml" in finding.remedy
    )
    shutil.copy(shipped_folder() / "data" / "dagster.yaml", settings.dagster_home)
    assert not list(_dagster(settings))
