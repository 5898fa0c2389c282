"""The services of an open application, each imported and built with its first use: a turn has its answer without them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandora_dagster.app.adapters.store_adapters import StoreAdapters
    from pandora_dagster.app.health import HealthService
    from pandora_dagster.app.index_service import IndexService
    from pandora_dagster.app.lineage_service import LineageService
    from pandora_dagster.app.search_service import SearchService
    from pandora_dagster.app.transfer_service import TransferService
    from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
    from pandora_dagster.settings import Settings


@dataclass(frozen=True)
class Services:
    """The services over one store."""

    settings: "Settings"
    stores: "StoreAdapters"
    counter: "TokenMeasure"
    clock: "Clock"
    open_health: "Callable[[IndexService], HealthService]"

    @cached_property
    def lineage(self) -> "LineageService":
        """The lineage of the store, with its summary levels."""
        from pandora_dagster.app.adapters.service_adapters import open_lineage_service

        return open_lineage_service(self.stores, self.counter, self.clock)

    @cached_property
    def indexes(self) -> "IndexService":
        """The indexes of the store, each with the functions that rebuild and verify it."""
        from pandora_dagster.app.adapters.service_adapters import open_index_service

        return open_index_service(self.stores, self.lineage)

    @cached_property
    def transfer(self) -> "TransferService":
        """Import into the store and export out of it."""
        from pandora_dagster.app.adapters.service_adapters import open_transfer_service

        return open_transfer_service(self.settings, self.stores)

    @cached_property
    def search(self) -> "SearchService":
        """Search in the messages of turns."""
        from pandora_dagster.app.search_service import SearchService

        return SearchService(self.stores.index, self.settings.user, self.counter.count)

    @cached_property
    def health(self) -> "HealthService":
        """The health checks of the store and, for the runtimes `sglang` and `openai`, of their servers."""
        return self.open_health(self.indexes)
