"""Fence around text for models: it is in `prompts/`, where versions cover it and a rollback replaces it, and never in Python."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from pandora_dagster.app import recipe_admin
from pandora_dagster.app.composition import utc_now
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, RecipeTest
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.recipes.recipe_paths import prompt_files
from pandora_dagster.recipes.schema_notation import render_schema
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.runtime.sglang.completion_requests import Request, completion_request
from pandora_dagster.settings import load_settings
from tests.architecture.sources import Source, package_sources
from tests.governance.recipe_copies import copied, edit
from tests.runtime.sglang_packs import endpoints

_SERVER = "http://127.0.0.1:1/v1"
RECIPES = open_recipes().names()
_VARIABLE = re.compile(r"\{\{\s*[a-z][a-z0-9_]*\s*\}\}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_MARKS = re.compile(r'</?(?:query|variables|feedback|document)(?: name="[^"]*")?>')
_PROSE = re.compile(r"[^\W\d_]+[ ,]+[^\W\d_]+[ ,]+[^\W\d_]+")


class RecordingRuntime(ExtractiveRuntime):
    """Keeps every request as a server would get it; its first answer to a call is empty, so that a retry follows."""

    def __init__(self, counter: object) -> None:
        super().__init__(counter, utc_now)  # type: ignore[arg-type]
        self.requests: list[Request] = []
        self._attempts: Counter[str] = Counter()

    @property
    def name(self) -> str:
        return "recorded"

    def model(self, layer: ModelLayer) -> str:
        return f"recorded-{layer.value}"

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        self.requests += [completion_request(pack, endpoints(_SERVER, chat=chat)[pack.layer], attempt=0) for chat in (True, False)]
        self._attempts[pack.call_id] += 1
        if self._attempts[pack.call_id] == 1:
            return ModelAnswer("", "stop", Usage(), self.name, self.model(pack.layer), 1.0)
        return await super().complete(pack, timeout_s=timeout_s, on_words=on_words)


def requests_of(folder: Path, recipe: str) -> list[Request]:
    """What the tests of a recipe send, attempts after a refused answer included."""
    settings = load_settings({"PANDORA_RECIPES": str(folder), "PANDORA_ROOT": str(folder / "store")})
    admin = recipe_admin.open_recipe_admin(settings)
    runtime = RecordingRuntime(admin.counter)
    recipe_admin.run_tests(settings, admin, recipe, runtime=runtime)
    assert any("<feedback>" in request.user for request in runtime.requests)
    return runtime.requests


def foreign_words(request: Request, templates: Iterable[str], loaded: LoadedRecipe) -> list[str]:
    """The words of a request that come from no prompt file, no input of a test, no schema and no mark."""
    changing = _MARKS.sub(" ", request.user)
    for given in {value for test in loaded.recipe.tests for value in _inputs(test)}:
        changing = re.sub(rf"^(\w+: )?\s*{re.escape(given)}$", " ", changing, flags=re.MULTILINE)
    whole = " ".join(str(message["content"]) for message in request.messages) if request.chat else request.prompt
    frame = whole.replace(request.system, " ").replace(request.user, " ")
    fixed = "\n\n".join((request.system, changing, frame))
    for template in sorted(templates, key=len, reverse=True):
        fixed = _template(template).sub(" ", fixed)
    schema = loaded.recipe.output_schema
    return _WORD.findall(fixed.replace(render_schema(schema), " ") if schema else fixed)


def _template(text: str) -> re.Pattern[str]:
    """A pattern of what a prompt text becomes: a variable may have any value."""
    return re.compile("(?s:.*?)".join(re.escape(piece) for piece in _VARIABLE.split(text.strip())))


def _inputs(test: RecipeTest) -> Iterator[str]:
    documents = test.documents.values()
    texts = [test.query, *test.variables.values(), *(d.text for d in documents), *(d.header for d in documents)]
    texts += [item.text for d in documents for item in d.items]
    yield from (line.strip() for text in texts for line in text.splitlines() if line.strip())


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_request_has_only_texts_of_prompts_inputs_and_schema(recipe: str, tmp_path: Path) -> None:
    """Chat and plain requests of every shipped recipe, retries included."""
    folder = copied(tmp_path)
    loader = open_recipes(folder)
    templates = [path.read_text(encoding="utf-8") for path in prompt_files(loader.prompts).values()]
    loaded = loader.load_with_tests(recipe)
    for request in requests_of(folder, recipe):
        assert foreign_words(request, templates, loaded) == []


def test_every_frame_reaches_a_request(tmp_path: Path) -> None:
    """An edited frame is what the next call sends, and what its version covers."""
    folder = copied(tmp_path)
    before = open_recipes(folder).load("pipeline/phase1_reflection")
    for name in ("json_answer", "answer_shape", "retry", "answer_cue"):
        text = (folder / f"prompts/frames/{name}.md").read_text(encoding="utf-8")
        edit(folder, f"prompts/frames/{name}.md", text, f"Mark{name} {text}")
    requests = requests_of(folder, "pipeline/phase1_reflection")
    sent = "\n".join(request.prompt for request in requests if not request.chat)
    assert all(f"Mark{name}" in sent for name in ("json_answer", "answer_shape", "retry", "answer_cue"))
    after = open_recipes(folder).load("pipeline/phase1_reflection")
    assert (after.version, after.prompt_version) != (before.version, before.prompt_version)


# Inputs that a package builds, such as a document of an archival run: their words come from data.

_INPUT_TYPES = frozenset({"InputDocument", "CallRequest", "Part", "counted_part", "Item"})


def prose_inputs(sources: Iterable[Source]) -> list[str]:
    """Literals of three words or more in what is built as a part of a request; names of items are for reports."""
    return [
        f"{source.name}:{literal.lineno}: {literal.value}"
        for source in sources
        for call in source.nodes(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id in _INPUT_TYPES
        for argument in (*call.args[: 1 if call.func.id == "Item" else None], *(k.value for k in call.keywords if k.arg != "name"))
        for literal in ast.walk(argument)
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str) and _PROSE.search(literal.value)
    ]


def test_no_input_of_a_call_is_written_in_python() -> None:
    assert prose_inputs(package_sources()) == []


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('task = InputDocument("task_context", f"What one person asked for in {n} conversations.")', 1),
        ('request = CallRequest(recipe="a", query="Summarise the whole session.")', 1),
        ('part = Part("query", "query", "Is this a request?", 6)', 1),
        ('task = InputDocument("task_context", f"conversations: {n}")', 0),
    ],
)
def test_prose_in_an_input_is_found(text: str, faults: int) -> None:
    assert len(prose_inputs([Source("archive.levels", text)])) == faults
