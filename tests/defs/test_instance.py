"""Dagster's own records on a real disk."""

from pathlib import Path

from dagster._core.run_coordinator import QueuedRunCoordinator

from pandora_dagster.defs.instance import add_turn_partitions, open_instance_at

SHIPPED = Path(__file__).parents[2] / "data" / "dagster.yaml"


def test_a_home_is_made_with_the_shipped_settings(tmp_path):
    """Telemetry and the first-run dialog are off; runs are queued, which backfills need; all events are in one file."""
    with open_instance_at(tmp_path / "dagster", SHIPPED) as instance:
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
        assert isinstance(instance.run_coordinator, QueuedRunCoordinator)
        assert [path.name for path in (tmp_path / "dagster").rglob("*event*.db")] == ["event_log.db"]
        assert not (tmp_path / "dagster" / "history" / "runs").exists()
        assert Path(instance.root_directory) == tmp_path / "dagster"


def test_a_dagster_yaml_that_is_there_stays(tmp_path):
    """What a user wrote into DAGSTER_HOME is theirs."""
    (tmp_path / "dagster.yaml").write_text("nux: {enabled: true}\n")
    with open_instance_at(tmp_path, SHIPPED) as instance:
        assert instance.nux_enabled


def test_a_partition_is_added_once(tmp_path, key):
    """Adding a known turn again changes nothing."""
    with open_instance_at(tmp_path, SHIPPED) as instance:
        add_turn_partitions(instance, [key])
        add_turn_partitions(instance, [key])
        assert list(instance.get_dynamic_partitions("turns")) == ["ann:turn_000811"]
