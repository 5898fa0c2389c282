"""What goes into a pack before any budget."""

from typing import Any

import pytest

from pandora_dagster.contracts.model_calls import CallRequest, CallSite, InputDocument, Item
from pandora_dagster.contracts.recipe_schema import PromptFile
from pandora_dagster.execution.call_faults import CallFaultError
from pandora_dagster.execution.call_inputs import gather_inputs

CONTEXT = (
    "before\n\n## 0. User Query\n\n\\## 2. Not a section\n\n## 1. Reflection Decision\n\nPROCEED\n\n## 2. Gathered Context\n\nfacts\n\n"
)


def _request(*documents: InputDocument, **variables: str) -> CallRequest:
    return CallRequest("r", "hi", CallSite("plan", "anna", "s1"), documents=documents, variables=variables)


@pytest.mark.parametrize(
    ("sections", "docs", "inside", "outside"),
    [
        (("§2",), (), ["User Query", "facts", "\\## 2. Not"], ["PROCEED", "before"]),
        (("§0", "§1", "§4"), ("context.md",), ["User Query", "PROCEED"], ["facts"]),
        ((), ("context.md",), ["before", "User Query", "PROCEED", "facts"], []),
    ],
)
def test_only_the_chosen_sections_travel(sections: Any, docs: Any, inside: list[str], outside: list[str], make_recipe: Any) -> None:
    """Section 0 is always there; a section that is not written yet is left out; no sections named: all of it."""
    found = gather_inputs(_request(InputDocument("context.md", CONTEXT)), make_recipe(input_sections=sections, input_docs=docs), ())
    text = found.documents[0].text
    assert all(piece in text for piece in inside) and not any(piece in text for piece in outside)


def test_documents_come_in_the_recipes_order_and_absent_ones_are_left_out(make_recipe: Any) -> None:
    """Not offered, empty or not named by the recipe: not in the pack."""
    recipe = make_recipe(input_sections=(), input_docs=("b", "a", "never", "blank"))
    offered = (InputDocument("a", "A"), InputDocument("other", "O"), InputDocument("b", items=(Item("B"),)), InputDocument("blank", " \n"))
    assert [d.name for d in gather_inputs(_request(*offered), recipe, ()).documents] == ["b", "a"]


def test_variables_are_filled_from_the_call_and_its_site(make_recipe: Any) -> None:
    """A value is never searched for names again, and its further lines are indented."""
    prompts = ((PromptFile(path="prompts/p/a.md"), "{{mode}} {{ limit }} {{tools}} {{note}}"),)
    recipe = make_recipe(
        prompts=prompts,
        input_sections=(),
        input_docs=("x",),
        variables={"limit": "{{n}} tokens", "note": "{{note}}", "where": "{{session_id}}"},
    )
    found = gather_inputs(_request(n="500", note="{{mode}}\nlimit: 9"), recipe, ("memory.query", "doc.search"))
    assert found.prompts[0] == "chat 500 tokens memory.query, doc.search {{mode}}\nlimit: 9"
    assert found.variables == "limit: 500 tokens\nnote: {{mode}}\n  limit: 9\nwhere: s1"


def test_every_missing_name_is_listed_once(make_recipe: Any) -> None:
    """Names from prompts and variables together; a recipe variable is known to the prompts."""
    prompts = ((PromptFile(path="prompts/p/a.md"), "{{x}} {{limit}} {{y}} {{x}}"),)
    recipe = make_recipe(prompts=prompts, input_sections=(), input_docs=("d",), variables={"limit": "{{z}}"})
    with pytest.raises(CallFaultError, match=r"\{\{z\}\}, \{\{x\}\}, \{\{y\}\}: expected"):
        gather_inputs(_request(), recipe, ())


def test_the_query_travels_once(make_recipe: Any) -> None:
    """Section 0 and a document that is the query are left to the query part; what only quotes the query stays."""
    recipe = make_recipe(input_sections=("§0", "§2"), input_docs=("raw_query", "notes"))
    context = "## 0. User Query\n\nhi\n\n## 2. Gathered Context\n\nfacts\n\n"
    offered = (InputDocument("context.md", context), InputDocument("raw_query", "hi"), InputDocument("notes", "they said hi"))
    found = gather_inputs(_request(*offered), recipe, ())
    assert [(d.name, d.text) for d in found.documents] == [
        ("context.md", "## 2. Gathered Context\n\nfacts"),
        ("notes", "they said hi"),
    ]
    assert found.query == "hi"


def test_a_context_that_holds_the_query_alone_is_no_document(make_recipe: Any) -> None:
    """Nothing is left to say beside the query part."""
    recipe = make_recipe(input_sections=("§0",), input_docs=())
    assert gather_inputs(_request(InputDocument("context.md", "## 0. User Query\n\nhi\n\n")), recipe, ()).documents == ()


def test_a_section_0_of_other_words_stays(make_recipe: Any) -> None:
    """Only a copy of the query is left out."""
    recipe = make_recipe(input_sections=("§0",), input_docs=())
    assert "User Query" in gather_inputs(_request(InputDocument("context.md", "## 0. User Query\n\nbye\n\n")), recipe, ()).documents[0].text
