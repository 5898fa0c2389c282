"""Where the files that travel with the package lie. Knows a wheel from a checkout; reads none of the files."""

from pathlib import Path


def shipped_folder(package: Path | None = None) -> Path:
    """The folder that holds the shipped `recipes/`, `prompts/` and `data/`.

    In an installed wheel they lie in the package's `shipped/`, in a checkout beside the package.
    """
    package = package or Path(__file__).resolve().parent
    inside = package / "shipped"
    return inside if inside.is_dir() else package.parent
