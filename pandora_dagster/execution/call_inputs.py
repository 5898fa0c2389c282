"""The inputs of one call: its documents, sections and variables, before any budget (specification 000, section 15, step 2).

A document that the recipe names and the request does not offer has no content (no earlier turns, no tool ran): it is left out, and recorded
with 0 tokens. `recipes check` refuses names that no call can load.
`context.md` is the exception: a recipe that reads sections cannot run without it.

The query is in a pack once: the query part of the pack is section 0 (specification 000, section 12.2). So `context.md` goes without its
copy of the query, and a document that contains only the query (`raw_query`) is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pandora_dagster.compression.verification.cited_passages import cited_passages
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
    """Resolve everything that the recipe names.

    Raises CallFaultError, with all missing variable names at once, and for a missing or damaged context.md.
    """
    recipe = loaded.recipe
    prompt_texts = select_prompts(loaded, mode=request.mode, intent=request.intent)
    values = {**_call_variables(request, tools), **request.variables}
    _require_variables(recipe, prompt_texts, values)
    shown_variables = {name: fill_variables(text, values) for name, text in recipe.variables.items()}
    prompts = tuple(fill_variables(text, {**values, **shown_variables}) for text in prompt_texts)
    return CallInputs(prompts, _variable_lines(shown_variables), _input_documents(request, recipe), request.query)


def _require_variables(recipe: Recipe, prompts: Sequence[str], values: Mapping[str, str]) -> None:
    names = dict.fromkeys(
        (*_variable_names(recipe.variables.values()), *(n for n in _variable_names(prompts) if n not in recipe.variables))
    )
    if missing_names := [f"{{{{{name}}}}}" for name in names if name not in values]:
        raise unrecoverable_fault(
            InterventionType.CONFIG_ERROR, f"{recipe.name}: variables without a value: {', '.join(missing_names)}: expected all to be given"
        )


def _variable_names(texts: Iterable[str]) -> list[str]:
    return [name for text in texts for name in variables_in(text)]


def _call_variables(request: CallRequest, tools: tuple[str, ...]) -> dict[str, str]:
    """The variables that every call has."""
    common = {"mode": request.mode, "intent": request.intent, "tools": ", ".join(tools)}
    return common | request.site.fields


def _variable_lines(variables: Mapping[str, str]) -> str:
    """One variable a line; further lines of a value are indented, so that a value never looks like another variable."""
    return "\n".join(f"{name}: " + "\n  ".join(value.splitlines()) for name, value in variables.items())


def _input_documents(request: CallRequest, recipe: Recipe) -> tuple[InputDocument, ...]:
    """The offered documents that the recipe names, in its order, without copies of the query and without empty ones."""
    offered = {document.name: document for document in request.documents}
    names = dict.fromkeys(recipe.input_docs)
    if recipe.input_sections and CONTEXT_DOCUMENT not in names:
        names = dict.fromkeys((CONTEXT_DOCUMENT, *names))
    if CONTEXT_DOCUMENT in names:
        offered[CONTEXT_DOCUMENT] = _context_document(offered.get(CONTEXT_DOCUMENT), recipe)
    documents = (_without_query_copy(offered[name], request.query) for name in names if name in offered)
    return tuple(document for document in documents if document.text.strip() or document.items)


def _context_document(document: InputDocument | None, recipe: Recipe) -> InputDocument:
    """context.md with the sections that the recipe reads, whole where it names none; `_without_query_copy` removes section 0.

    `input_sections` holds marks such as `§3`.
    """
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


def evidence_texts(request: CallRequest) -> dict[str, str]:
    """Label -> the text that a statement citing it is compared with: context.md under it, its tool result, the source itself."""
    documents = {document.name: "\n".join((document.text, *(item.text for item in document.items))) for document in request.documents}
    texts = cited_passages(ContextDocument.parse(documents.get(CONTEXT_DOCUMENT, "")), documents.get("toolresults.md", ""))
    return texts | {label: f"{texts.get(label, '')}\n\n{text}" for label, text in request.evidence.items()}


def _without_query_copy(document: InputDocument, query: str) -> InputDocument:
    """The document without its copy of the query; any other document unchanged."""
    if document.text.strip() == query.strip():
        return replace(document, text="")
    if document.name != CONTEXT_DOCUMENT:
        return document
    parsed = ContextDocument.parse(document.text)
    if parsed.query().strip() != query.strip():
        return document
    other_sections = ContextDocument(parsed.preamble, tuple(s for s in parsed.sections if s.number))
    return replace(document, text=other_sections.render().rstrip("\n"))
