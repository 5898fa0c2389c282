"""Recorded answers to recipe tests: `<folder>/<category>/<name>.json`, in a folder that the user names."""

from pathlib import Path

from pandora_dagster.contracts.recipe_governance import RecordedAnswers
from pandora_dagster.stores.disk.layout import recipe_key
from pandora_dagster.stores.disk.record_files import RecordFiles, StorageRoot


class RecordedAnswerFiles:
    """The recordings in one folder, one file for each recipe."""

    def __init__(self, folder: StorageRoot) -> None:
        self._files = RecordFiles(folder, "{category}/{name}.json", RecordedAnswers, expected="recorded answers of format 1")

    def put(self, recorded: RecordedAnswers) -> Path:
        """Store the recordings of a recipe over its older ones; returns the path. Raises StoreError."""
        key = recipe_key(recorded.recipe)
        self._files.put(recorded, *key)
        return Path(self._files.locate(*key))

    def of_recipe(self, recipe: str) -> RecordedAnswers | None:
        """The recordings of `{category}/{name}`, None where there are none; raises DocumentError for a damaged file."""
        return self._files.find(*recipe_key(recipe))
