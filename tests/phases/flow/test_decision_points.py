"""The decisions that belong to prompts: each has its recipe and layer, and no code decides in their place (000 section 7)."""

import ast
import re
import runpy
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

from pandora_dagster.contracts import phase_outputs
from pandora_dagster.contracts.enums import Mode
from pandora_dagster.phases.flow.phase_table import PHASES
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.research.recipe_calls import DOCUMENTS_OF_RECIPE

PACKAGE = Path(__file__).parents[3] / "pandora_dagster"
DECISIONS = runpy.run_path(str(PACKAGE.parent / "docs" / "prompt_decisions.py"))["DECISIONS"]
"""The table that docs/reference/recipes.md shows."""
RECIPES = open_recipes()
CATEGORIES = "|".join(sorted({name.partition("/")[0] for name in RECIPES.names()}))
RECIPE_NAME = re.compile(rf"(?:{CATEGORIES})/[a-z]\w*|phase\d+_\w+")
CALLERS = ("phases/", "archive/", "research/", "app/web/", "cli/", "governance/failure_lessons.py", "recipes/recipe_paths.py")
"""What calls recipes by their names; examples in the help of commands are words for users, and one module has names of 000."""
COMPRESSORS = {name.partition("/")[2] for name in RECIPES.names() if name.startswith("compression/")}
NINE = (
    "Reflection Gate",
    "Planner",
    "Coordinator",
    "Research Strategy",
    "Web Navigation",
    "Extraction Validation",
    "Synthesis",
    "Validation",
    "Compression",
)
TEXT_METHODS = {"startswith", "endswith", "search", "match", "fullmatch", "findall", "finditer", "lower", "casefold", "isdigit", "lstrip"}
STRUCTURE = {
    "compact_context.py": {"f.origin.startswith(f'{session}/')"},
    "coordination.py": {"NO_SOURCE in r.outcome.text", "ctx.deps.recipes.get(COORDINATOR, ctx.mode).recipe.risk_level == 'high'"},
    "conversation_summary.py": {"value not in ([], 0, '')"},
    "day_ranges.py": {"line.startswith(_DAYS_PREFIX)"},
    "fact_lines.py": {"_LEDGER_LINE.findall(text)", "_SHOWN_LINE.findall(text)"},
    "note_source.py": {
        "cited_path.startswith('notes/')",
        "name.rpartition('/')[2].removesuffix('.md').lower()",
        "passage.lstrip('# ') not in ('', header.title)",
    },
    "manual_pages.py": {"PAGES in turn.files", "name == PAGES"},
    "phase_context.py": {"'query_analysis.json' in self.turn.files"},
    "prior_turns.py": {"window.forms[row.number] == 'summary'", "window.forms[row.number] in ('whole', 'summary')"},
    "research_source.py": {"cited_path.startswith('research_cache/')", "name != 'source'"},
    "section2.py": {"re.fullmatch(f'(?:{kinds}) [^:]+', name)", "s.source.traits.name != 'turn'"},
    "statement_support.py": {"claim.outcome == 'refused'"},
    "session_facts.py": {"f.origin.startswith(f'{session}/')"},
    "session_history.py": {"t.form == 'rolled up'"},
    "size_limits.py": {"text.endswith(_ANSWER_LINK)", "name != 'total'"},
    "turn_completion.py": {"source.path.startswith(_PAGE_FOLDERS)"},
    "tool_findings.py": {"shape.fullmatch(name)"},
    "write_approval.py": {"APPROVALS in turn.files", "name == APPROVALS"},
    "visit_source.py": {"cited_path.startswith('webpage_cache/')", "name != 'title'", "v not in ('', None)"},
}
"""Conditions on the project's own names (files, states, origins, headings), never on what a user or a model wrote."""
WORDS = {"session_facts.py": {"_QUESTION_START.match(s)", "s.rstrip().endswith('?')"}}
"""The conditions on words that there are: a question states nothing to remember. It decides nothing about the turn."""


def test_the_nine_rows_are_listed():
    """In their order, each with the one recipe that takes it."""
    assert tuple(point.decision for point in DECISIONS) == NINE
    assert len({point.recipe for point in DECISIONS}) == len(NINE)


@pytest.mark.parametrize("point", DECISIONS, ids=lambda p: p.decision)
def test_a_decision_runs_on_its_layer(point):
    """In both modes, as the recipe itself says; a phase or the research runs it, or the content of a text selects it."""
    if point.recipe == "compression":
        loaded = [RECIPES.load(name) for name in RECIPES.names() if name.startswith(f"{point.recipe}/")]
        found = [one for one in loaded if one.recipe.content_type]
    else:
        assert point.recipe in {recipe.name for spec in PHASES for recipe in spec.recipes} | set(DOCUMENTS_OF_RECIPE)
        found = [RECIPES.get(point.recipe, mode.value) for mode in Mode]
    assert found and {loaded.recipe.model_layer for loaded in found} == {point.layer}


def test_only_callers_name_recipes():
    """A recipe's name is in no other package."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.value}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(CALLERS)
        for node in _texts(ast.parse(path.read_text()))
        if _names_a_recipe(node.value.removesuffix(".yaml"))
    ]
    assert found == []


@pytest.mark.parametrize("path", sorted((PACKAGE / "phases").rglob("*.py")), ids=lambda p: p.stem)
def test_a_phase_branches_on_parsed_answers_alone(path):
    """A condition on a text is one on a field of an answer, or on a name of the project's own that stands in the table above."""
    known = STRUCTURE.get(path.name, set()) | WORDS.get(path.name, set())
    found = {ast.unparse(node) for node in _conditions_on_text(ast.parse(path.read_text())) if not _of_an_answer(node)}
    assert found - known == set(), "a decision on text belongs to a prompt; a name of the project's own belongs into STRUCTURE"
    assert known - found == set(), "no such condition any more"


def test_the_rule_sees_what_it_must():
    """Words of a user are found; a decision of an answer is not."""
    bad = "if 'refund' in query.lower():\n    pass\nx = [q for q in a if q == 'yes']\nwhile PATTERN.search(text): pass"
    assert len([n for n in _conditions_on_text(ast.parse(bad)) if not _of_an_answer(n)]) >= 3
    for hidden in (
        "_REFUND = 'refund'\ndef f(query):\n    if _REFUND in query: pass",
        "_WORDS: tuple[str, ...] = ('refund', 'back')\ndef f(query):\n    return query in _WORDS",
        "flag = 'refund' in query.casefold()",
        "kind = {True: 'a'}['refund' in query]",
        "def f(query): return PATTERN.search(query)",
    ):
        assert [n for n in _conditions_on_text(ast.parse(hidden)) if not _of_an_answer(n)], hidden
    assert all(map(_names_a_recipe, (*RECIPES.names(), "phase1_reflection", "compress_generic")))
    good = "if plan.next_step == 'clarify':\n    pass"
    assert [n for n in _conditions_on_text(ast.parse(good)) if not _of_an_answer(n)] == []


def _names_a_recipe(text: str) -> bool:
    """With its category, or by its stem where that is no common word."""
    return RECIPE_NAME.fullmatch(text) is not None or text in COMPRESSORS


def _texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts of a module that are no docstrings."""
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in bare)


def _conditions_on_text(tree: ast.Module) -> Iterator[ast.expr]:
    """Comparisons with texts and looks into them, wherever they stand: what is assigned or returned is a condition later."""
    texts = {name for node in tree.body for name in _named_texts(node)}
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.expr) and _on_text(node, texts))


def _named_texts(node: ast.stmt) -> Iterator[str]:
    """The names that a module gives to texts."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value and any(_has_words(one) for one in ast.walk(node.value)):
        yield from (t.id for t in (node.targets if isinstance(node, ast.Assign) else [node.target]) if isinstance(t, ast.Name))


def _on_text(node: ast.expr, texts: Set[str]) -> bool:
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        return any(_has_words(side) or (isinstance(side, ast.Name) and side.id in texts) for side in sides)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TEXT_METHODS and not _is_inner(node)


def _is_inner(node: ast.Call) -> bool:
    """A method inside a comparison that is reported by itself."""
    return isinstance(node.func, ast.Attribute) and node.func.attr == "lstrip"


def _has_words(side: ast.AST) -> bool:
    if isinstance(side, (ast.Tuple, ast.List, ast.Set)):
        return any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in side.elts)
    return isinstance(side, ast.Constant) and isinstance(side.value, str) and bool(side.value)


def _of_an_answer(node: ast.expr) -> bool:
    """Whether a comparison is of a fixed word of a parsed answer: `decision`, `next_step`, `action`."""
    words = {
        name
        for shape in vars(phase_outputs).values()
        if isinstance(shape, type) and hasattr(shape, "model_fields")
        for name, about in shape.model_fields.items()
        if "Literal" in str(about.annotation)
    }
    return isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr in words
