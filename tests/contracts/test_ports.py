"""Fences around the ports: each has a contract test that runs an adapter and a fake, or a reason why it needs none."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import pandora_dagster.contracts.ports as ports
import tests.fakes

FOLDER = Path(__file__).parent
FUNCTION = "a function type: one method"
DOMAIN = "implemented by the domain, not by an adapter"

PORTS = {
    "BudgetCompressor": DOMAIN,
    "Clock": FUNCTION,
    "Capacity": FUNCTION,
    "DocumentFitter": DOMAIN,
    "RecipeExecutor": DOMAIN,
    "TokenMeasure": FUNCTION,
    "KeepsTurnFiles": FUNCTION,
    "ToolListener": FUNCTION,
    "AskRecipe": FUNCTION,
    "ExpiringRuns": FUNCTION,
    "TraceScrubber": DOMAIN,
    "Batches": "test_batches",
    "Blobs": "test_blobs",
    "CallCounts": "test_calls",
    "CallHistory": "test_calls",
    "CallLog": "test_record_stores",
    "ColdStorage": "test_cold_storage",
    "ConversationSummaries": "test_user_stores",
    "ContextSource": "test_context_sources",
    "Continuations": "test_continuations",
    "Corrections": "test_feedback_stores",
    "DocumentTexts": "test_lineage_texts",
    "EmbeddingModel": "test_embedding_model",
    "Eraser": "test_erasers",
    "ErasureRecords": "test_erasure_ports",
    "ExpiringVault": "test_calls",
    "FactStore": "test_user_stores",
    "Holds": "test_holds",
    "IndexFile": "test_lineage_rows",
    "Interventions": "test_record_stores",
    "Lease": "test_locks",
    "LevelStore": "test_level_store",
    "LineageIndex": "test_lineage_rows",
    "LineageWriter": "test_session_stores",
    "Locks": "test_locks",
    "MemoryStore": "test_user_stores",
    "Metrics": "test_measurements",
    "ModelRuntime": "test_model_runtimes",
    "NoteStore": "test_user_stores",
    "QueryFiles": "test_query_files",
    "RecipeCatalog": "test_recipe_catalog",
    "RecipeTestStore": "test_feedback_stores",
    "RecipeVersionStore": "test_recipe_versions",
    "RecordFolder": "test_record_folders",
    "RecordedAnswerStore": "test_recorded_answer_store",
    "SearchIndex": "test_search_index",
    "Sessions": "test_session_stores",
    "SourceStore": "test_user_stores",
    "TokenRatios": "test_measurements",
    "Tool": "test_tools",
    "TurnArchive": "test_turn_archive",
    "TurnIndex": "test_search_index",
    "TurnStore": "test_turn_store",
    "UserDocuments": "test_erasure_ports",
    "Vault": "test_record_stores",
    "VectorIndex": "test_vector_index",
}
"""Port -> the module of its contract test, or why there is none."""
FAKES = {
    "Blobs": "storage.FakeBlobs",
    "CallCounts": "call_records.MemoryCallCounts",
    "CallHistory": "call_records.MemoryCallHistory",
    "CallLog": "record_stores.MemoryCallLog",
    "ColdStorage": "cold_storage.MemoryColdStorage",
    "ConversationSummaries": "user_stores.MemoryConversationSummaries",
    "ContextSource": "context_sources.BookSource",
    "Corrections": "recipe_stores.MemoryCorrections",
    "DocumentTexts": "lineage.MemoryDocumentTexts",
    "EmbeddingModel": "embedding_model.FakeEmbedder",
    "Eraser": "erasure.FakeEraser",
    "ErasureRecords": "erasure_ports.MemoryErasureRecords",
    "ExpiringVault": "call_records.MemoryExpiringVault",
    "FactStore": "user_stores.MemoryFactStore",
    "IndexFile": "lineage.MemoryIndexFile",
    "Interventions": "record_stores.MemoryInterventions",
    "LevelStore": "level_store.MemoryLevelStore",
    "LineageIndex": "lineage.MemoryLineageIndex",
    "LineageWriter": "record_stores.MemoryLineageWriter",
    "Locks": "storage.FakeLocks",
    "MemoryStore": "user_stores.MemoryEntryStore",
    "Metrics": "measurement.MemoryMetrics",
    "ModelRuntime": "model_runtimes.ScriptedRuntime",
    "NoteStore": "user_stores.MemoryNoteStore",
    "QueryFiles": "query_files.MemoryQueryFiles",
    "RecipeCatalog": "recipe_catalog.MemoryRecipeCatalog",
    "RecipeTestStore": "recipe_stores.MemoryRecipeTests",
    "RecipeVersionStore": "recipe_stores.MemoryRecipeVersions",
    "RecordFolder": "record_folder.MemoryRecordFolder",
    "SearchIndex": "search_index.MemorySearchIndex",
    "Sessions": "user_stores.MemorySessions",
    "SourceStore": "user_stores.MemorySourceStore",
    "TokenRatios": "measurement.MemoryTokenRatios",
    "Tool": "tools.ScriptedTool",
    "TurnArchive": "turn_archive.MemoryTurnArchive",
    "TurnIndex": "search_index.MemorySearchIndex",
    "TurnStore": "turn_store.MemoryTurnStore",
    "UserDocuments": "erasure_ports.MemoryUserDocuments",
    "Vault": "record_stores.MemoryVault",
    "VectorIndex": "vector_index.MemoryVectorIndex",
}
"""Port -> its fake. `Batches`, `Continuations`, `Holds` and `RecordedAnswerStore` have one implementation over the storage, which is what
their tests exchange."""


def protocols() -> dict[str, str]:
    """Every port, and its module."""
    found: dict[str, str] = {}
    for place in ports.__path__:
        for file in Path(place).glob("*.py"):
            for node in ast.parse(file.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and any(ast.unparse(base).startswith("Protocol") for base in node.bases):
                    found[node.name] = f"{ports.__name__}.{file.stem}"
    return found


def carriers(module: str) -> int:
    """How many carriers the fixture with the most of them runs; 0 without the module. A fixture lists them, or sorts a table of them."""
    file = FOLDER / f"{module}.py"
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8")))) if file.is_file() else []
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.fixture"]
    given = [key.value for call in calls for key in call.keywords if key.arg == "params"]
    listed = [len(params.elts) for params in given if isinstance(params, ast.List)]
    tables = {ast.unparse(params.args[0]) for params in given if isinstance(params, ast.Call) and ast.unparse(params.func) == "sorted"}
    assigned = [node for node in nodes if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict)]
    named = [(node.targets[0] if isinstance(node, ast.Assign) else node.target, node.value) for node in assigned]
    rows = [len(value.keys) for target, value in named if isinstance(value, ast.Dict) and ast.unparse(target) in tables]
    return max([0, *listed, *rows])


def differences(port: type, fake: type) -> Iterator[str]:
    """What a fake lacks of its port, or declares otherwise."""
    attributes = set(inspect.get_annotations(fake))
    for base in port.__mro__:
        for name, member in vars(base).items() if getattr(base, "_is_protocol", False) else ():
            if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
                continue
            own = getattr(fake, name, None)
            if own is None and name not in attributes:
                yield f"{fake.__name__}.{name}: missing"
            elif inspect.isfunction(member) and _parameters(own) != _parameters(member):
                yield f"{fake.__name__}.{name}{_parameters(own)}: expected {_parameters(member)}"


def _parameters(method: object) -> list[tuple[str, str, bool]]:
    found = inspect.signature(method).parameters.values() if callable(method) else ()
    return [(one.name, one.kind.name, one.default is not one.empty) for one in found]


def test_every_port_has_a_contract_test_or_a_reason() -> None:
    assert set(protocols()) == set(PORTS)


@pytest.mark.parametrize("module", sorted(set(PORTS.values()) - {FUNCTION, DOMAIN}))
def test_a_contract_test_runs_two_carriers(module: str) -> None:
    assert carriers(module) >= 2


@pytest.mark.parametrize("port", [port for port, why in PORTS.items() if why == FUNCTION])
def test_a_function_type_has_one_method(port: str) -> None:
    methods = vars(getattr(importlib.import_module(protocols()[port]), port))
    assert len([name for name in methods if name == "__call__" or (inspect.isfunction(methods[name]) and name[0] != "_")]) == 1


@pytest.mark.parametrize("port", FAKES)
def test_a_fake_has_the_methods_of_its_port(port: str) -> None:
    """And its contract test runs it."""
    module, _, name = FAKES[port].partition(".")
    fake = getattr(importlib.import_module(f"tests.fakes.{module}"), name)
    assert list(differences(getattr(importlib.import_module(protocols()[port]), port), fake)) == []
    assert name in (FOLDER / f"{PORTS[port]}.py").read_text("utf-8")


def test_every_fake_has_a_contract_test() -> None:
    """A fake that no contract test compares with its adapter may say anything."""
    tested = {
        node.id for file in FOLDER.glob("test_*.py") for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Name)
    }
    classes = [
        node.name
        for place in tests.fakes.__path__
        for file in Path(place).glob("*.py")
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(classes) >= 15 and [name for name in classes if name not in tested] == []
