"""Decision 42 names each recipe that 000 section 9 counts: with its file, or with what decides it instead."""

import re
from importlib.util import find_spec

from tests.docs.pages import DOCS, REPOSITORY

COUNTS = {"pipeline": 15, "research": 23, "browser": 22, "memory": 8, "tools": 12, "filtering": 3, "reflection": 4, "navigation": 3}
"""Recipes by category, as 000 section 9 counts them."""
OWN = {"compression", "memory"}
"""Categories that have recipes which section 9 does not count."""
_CODE = re.compile(r"`([^`]+)`")
_PAGE = (DOCS / "decisions" / "42-the-recipe-catalogue.md").read_text(encoding="utf-8")


def rows(columns: int) -> list[list[str]]:
    """The cells of the table with so many columns, without its head."""
    lines = [line.strip("|").split("|") for line in _PAGE.split("\n") if line.startswith("| ")]
    table = [[cell.strip() for cell in line] for line in lines if len(line) == columns]
    return table[1:]


SHIPPED = {_CODE.findall(category)[0]: (int(count), _CODE.findall(names)) for category, count, names in rows(3)}
LEFT_OUT = [(_CODE.findall(category)[0], _CODE.findall(names) or [names], places, why) for category, names, places, why in rows(4)]


def files(category: str) -> set[str]:
    return {path.stem for path in (REPOSITORY / "recipes" / category).glob("*.yaml")}


def test_every_category_has_as_many_names_as_the_documents_count() -> None:
    assert {category: count for category, (count, _) in SHIPPED.items()} == COUNTS
    left_out = {category: sum(len(names) for of, names, _, _ in LEFT_OUT if of == category) for category in COUNTS}
    assert {category: len(SHIPPED[category][1]) + left_out[category] for category in COUNTS} == COUNTS
    assert f"Of the {sum(COUNTS.values())} recipes" in _PAGE and f"\n{sum(left_out.values())} are left out" in _PAGE
    assert f" {sum(len(names) for _, names in SHIPPED.values())} are shipped" in _PAGE


def test_what_is_shipped_has_a_file_and_every_file_is_named() -> None:
    further = _PAGE.partition("Further recipes are the project's own:")[2].partition("\n\n")[0]
    for category in sorted({path.name for path in (REPOSITORY / "recipes").iterdir() if path.is_dir()}):
        named = set(SHIPPED[category][1]) if category in SHIPPED else set[str]()
        assert named <= files(category), category
        others = files(category) - named
        assert not others or (category in OWN and (f"`{category}/`," in further or others <= set(_CODE.findall(further)))), others


def test_what_is_left_out_has_no_file_and_what_decides_it_exists() -> None:
    for category, names, places, why in LEFT_OUT:
        assert not set(names) & files(category) and why, names
        found = _CODE.findall(places)
        assert found or places == "nothing", names
        for place in found:
            is_file = (REPOSITORY / "recipes" / f"{place}.yaml").is_file()
            assert is_file if "/" in place else find_spec(place) is not None, place
