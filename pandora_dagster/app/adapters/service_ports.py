"""The ports of a store that only services of the application work with."""

from collections.abc import Callable
from dataclasses import dataclass

from pandora_dagster.contracts.ports.archive_storage import ColdStorage, Holds, TurnArchive
from pandora_dagster.contracts.ports.record_storage import Batches, Corrections, QueryFiles, RecipeTestStore
from pandora_dagster.contracts.ports.user_storage import LevelStore
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.contracts.user.conversations import Message


@dataclass(frozen=True, slots=True)
class ArchivePorts:
    """The ports that archival works with beside those of phases."""

    cold: ColdStorage
    folders: TurnArchive
    holds: Holds
    levels: LevelStore
    preamble: Callable[[Manifest], tuple[Message, ...]]
    """The messages before a recorded conversation's first turn."""


@dataclass(frozen=True, slots=True)
class RecordPorts:
    """The ports of records that only services of the application work with."""

    batches: Batches
    query_files: QueryFiles
    corrections: Corrections
    recipe_tests: RecipeTestStore
