"""The location of the files that are shipped with the package, in a wheel or a checkout."""

from pathlib import Path


def shipped_folder(package: Path | None = None) -> Path:
    """The folder that holds the shipped `recipes/`, `prompts/` and `data/`.

    In an installed wheel they are in the package's `shipped/`, in a checkout beside the package.
    """
    package = package or Path(__file__).resolve().parent
    wheel_folder = package / "shipped"
    return wheel_folder if wheel_folder.is_dir() else package.parent
