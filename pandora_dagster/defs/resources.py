"""The resources of the graph: each gives the assets one service of the application, which a process opens once.

Assets call `resource.open()` and then the service; a test replaces the resource by an object whose `open()` returns a fake.
"""

from functools import cache
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from pandora_dagster.app import App, open_app
from pandora_dagster.app.adapters.store_adapters import open_inbox
from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.app.batch_service import BatchService
from pandora_dagster.app.evaluation import Evaluation, open_evaluation
from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.ports.record_storage import Interventions, QueryFiles
from pandora_dagster.settings import Settings, load_settings, process_environment

if TYPE_CHECKING:
    from pandora_dagster.app.web.topic_service import TopicService


@cache
def cached_app(root: str, runtime: str, priority: Priority) -> App:
    """The application over these settings, opened once per process and priority.

    Dagster makes a new resource for each run, and opening the application takes more than a second: hence the cache.
    """
    return open_app(_settings(root, runtime), priority=priority)


def _settings(root: str, runtime: str) -> Settings:
    return load_settings(process_environment(PANDORA_ROOT=root, PANDORA_RUNTIME=runtime))


class StoreResource(dg.ConfigurableResource[None]):
    """A store on this machine. An empty field takes the value of the settings."""

    root: str = Field("", description="Folder of the store; empty: PANDORA_ROOT, or data/panda-system-docs.")

    def app(self, priority: Priority = Priority.INTERACTIVE) -> App:
        """The application of this process over the store; raises ConfigurationError."""
        return cached_app(self.root, self._runtime, priority)

    @property
    def settings(self) -> Settings:
        """The settings of the store, without the application; raises ConfigurationError."""
        return _settings(self.root, self._runtime)

    @property
    def _runtime(self) -> str:
        """The runtime to load the settings with; empty: PANDORA_RUNTIME."""
        return ""


class AppResource(StoreResource):
    """A store and the runtime that answers its model calls. Empty fields take the values of the settings."""

    runtime: str = Field("", description="Runtime: extractive, sglang, sglang-offline or openai; empty: PANDORA_RUNTIME.")

    @property
    def _runtime(self) -> str:
        return self.runtime


class BatchResource(AppResource):
    """Where the query files of the inbox are run, with lower priority than live turns. Empty fields take the values of the settings."""

    @property
    def inbox(self) -> QueryFiles:
        """The query files that wait in the inbox; the application is not opened."""
        return open_inbox(self.settings)

    def open(self) -> BatchService:
        return BatchService(self.app(Priority.BATCH))


class ArchiveResource(AppResource):
    """The store whose turns are archived, summarized and pruned, with lower priority than live turns.

    Empty fields take the values of the settings.
    """

    def open(self) -> ArchiveService:
        return ArchiveService(self.app(Priority.BATCH))


class ResearchResource(AppResource):
    """The store whose cached research of PANDORA_USER is listed and refreshed. Empty fields take the values of the settings."""

    def open(self) -> "TopicService":
        from pandora_dagster.app.web.topic_service import TopicService

        return TopicService(self.app(Priority.BATCH), self.settings.user)


class ScoreResource(StoreResource):
    """The store whose call records are scored by prompt and layer. An empty field takes the value of the settings."""

    def open(self) -> Evaluation:
        return open_evaluation(self.app())


class InterventionResource(StoreResource):
    """The store whose halted turns are reported. An empty field takes the value of the settings."""

    def open(self) -> Interventions:
        return self.app().interventions
