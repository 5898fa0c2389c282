"""One query to one search provider: what it found, without results that give orders to a model."""

from pandora_dagster.contracts.web.research_run import FoundHit, SearchRecord
from pandora_dagster.contracts.web.search import SearchProvider
from pandora_dagster.errors import FetchError, FetchRefusedError
from pandora_dagster.language.requests.orders_to_models import orders_model
from pandora_dagster.language.word_forms import counted

_RESULT_PAGES = 2


def search_provider(provider: SearchProvider, query: str, language: str) -> tuple[SearchRecord, list[FoundHit]]:
    """The first pages of results, and the record of the query; a provider that fails is a fault in the record."""
    record = SearchRecord(query=query, provider=provider.name)
    hits: list[FoundHit] = []
    try:
        for page in range(1, _RESULT_PAGES + 1):
            found = provider.search(query, page=page, language=language)
            kept = [hit for hit in found.hits if not orders_model(f"{hit.title}\n{hit.snippet}")]
            hits += [FoundHit(url=hit.url, title=hit.title, snippet=hit.snippet) for hit in kept]
            notices = (*record.notices, *found.notices, *_left_out(len(found.hits) - len(kept)))
            record = record.model_copy(update={"hits": record.hits + len(found.hits), "notices": notices})
            if not found.hits:
                break
    except FetchError as error:
        record = record.model_copy(update={"fault": str(error), "refused": isinstance(error, FetchRefusedError)})
    except Exception as error:  # a provider of another package is foreign code: its exceptions are the fault of the search
        record = record.model_copy(update={"fault": f"{type(error).__name__}: {error}"})
    return record, hits


def _left_out(hits: int) -> tuple[str, ...]:
    return (f"{counted(hits, 'result')} left out: title or text gives orders to a model",) if hits else ()
