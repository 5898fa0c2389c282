"""Step 2 of 000 section 15: the documents, sections and variables of one call. Counts nothing.

A document the recipe names and the request does not offer is left out: it has no content (no earlier turns, no tool ran).
`context.md` is the exception: a recipe that reads sections cannot run without it.

The query travels once per call: the pack's query part IS section 0 (000 section 12.2), so `context.md` goes without the copy of it, and so
does a document that contains only the query (`raw_query`): it would take a small layer's budget twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.model_calls import CallRequest, InputDocument
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, Recipe
from pandora_dagster.documents.sections import ContextDocument, parse_context
from pandora_dagster.errors import DocumentError
from pandora_dagster.execution.call_faults import unrecoverable_fault
from pandora_dagster.recipes.static_prompts import fill_variables, select_prompts, variables_in

CONTEXT_DOCUMENT = "context.md"


@dataclass(frozen=True, slots=True)
class CallInputs:
    """The inputs of one call, before any budget."""

    prompts: tuple[str, ...]
    """Filled prompt texts of the blocks that apply, in order."""
    variables: str
    """`name: value` lines, "" where the recipe shows none."""
    documents: tuple[InputDocument, ...]
    query: str


def gather_inputs(request: CallRequest, loaded: LoadedRecipe, tools: tuple[str, ...]) -> CallInputs:
    """Resolve everything the recipe names; raises CallFaultError with all missing variable names at once."""
    recipe = loaded.recipe
    chosen = select_prompts(loaded, mode=request.mode, intent=request.intent, policy=request.policy)
    known = {**_call_variables(request, tools), **request.variables}
    _require_variables(recipe, chosen, known)
    shown = {name: fill_variables(text, known) for name, text in recipe.variables.items()}
    prompts = tuple(fill_variables(text, {**known, **shown}) for text in chosen)
    return CallInputs(prompts, _variable_lines(shown), _input_documents(request, recipe), request.query)


def _require_variables(recipe: Recipe, prompts: Sequence[str], known: Mapping[str, str]) -> None:
    needed = dict.fromkeys(
        (*_variable_names(recipe.variables.values()), *(n for n in _variable_names(prompts) if n not in recipe.variables))
    )
    if missing := [f"{{{{{name}}}}}" for name in needed if name not in known]:
        raise unrecoverable_fault(
            InterventionType.CONFIG_ERROR, f"{recipe.name}: variables without a value: {', '.join(missing)}: expected all to be given"
        )


def _variable_names(texts: Iterable[str]) -> list[str]:
    return [name for text in texts for name in variables_in(text)]


def _call_variables(request: CallRequest, tools: tuple[str, ...]) -> dict[str, str]:
    """Variables that every call has."""
    own = {"mode": request.mode, "intent": request.intent, "policy": request.policy, "tools": ", ".join(tools)}
    return own | request.site.fields


def _variable_lines(variables: Mapping[str, str]) -> str:
    """One variable a line; further lines of a value are indented, so that a value never looks like another variable."""
    return "\n".join(f"{name}: " + "\n  ".join(value.splitlines()) for name, value in variables.items())


def _input_documents(request: CallRequest, recipe: Recipe) -> tuple[InputDocument, ...]:
    offered = {document.name: document for document in request.documents}
    names = dict.fromkeys(recipe.input_docs)
    if recipe.input_sections and CONTEXT_DOCUMENT not in names:
        names = dict.fromkeys((CONTEXT_DOCUMENT, *names))
    if CONTEXT_DOCUMENT in names:
        offered[CONTEXT_DOCUMENT] = _context_document(offered.get(CONTEXT_DOCUMENT), recipe)
    found = (_without_query_copy(offered[name], request.query) for name in names if name in offered)
    return tuple(document for document in found if document.text.strip() or document.items)


def _context_document(document: InputDocument | None, recipe: Recipe) -> InputDocument:
    """context.md with the sections that the recipe reads; section 0 always (000 section 12.2), in the end as the query part."""
    if document is None:
        raise unrecoverable_fault(
            InterventionType.MISSING_DOCUMENT, f"{recipe.name}: {CONTEXT_DOCUMENT}: expected it among the documents of the call"
        )
    try:
        parsed = parse_context(document.text, where=CONTEXT_DOCUMENT)
    except DocumentError as error:
        raise unrecoverable_fault(InterventionType.CORRUPT_DOCUMENT, f"{recipe.name}: {error}") from error
    if not recipe.input_sections:
        return document
    return InputDocument(CONTEXT_DOCUMENT, parsed.select(int(mark[1:]) for mark in recipe.input_sections).rstrip("\n"))


def _without_query_copy(document: InputDocument, query: str) -> InputDocument:
    """The document without its copy of the query; any other document unchanged."""
    if document.text.strip() == query.strip():
        return replace(document, text="")
    if document.name != CONTEXT_DOCUMENT:
        return document
    parsed = ContextDocument.parse(document.text)
    if parsed.query().strip() != query.strip():
        return document
    rest = ContextDocument(parsed.preamble, tuple(s for s in parsed.sections if s.number))
    return replace(document, text=rest.render().rstrip("\n"))
