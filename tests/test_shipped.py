"""Where shipped files lie."""

from pathlib import Path

from pandora_dagster.shipped import shipped_folder


def test_a_wheel_carries_them_inside(tmp_path: Path) -> None:
    """An installed package holds them in `shipped/`."""
    (tmp_path / "package" / "shipped").mkdir(parents=True)
    assert shipped_folder(tmp_path / "package") == tmp_path / "package" / "shipped"


def test_a_checkout_has_them_beside_the_package(tmp_path: Path) -> None:
    """A checkout holds them beside the package."""
    assert shipped_folder(tmp_path / "package") == tmp_path


def test_here_they_are() -> None:
    """The shipped runtime file is where the package looks for it."""
    assert (shipped_folder() / "data" / "runtime.yaml").is_file()
