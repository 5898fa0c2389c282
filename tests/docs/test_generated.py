"""Reads the package for the listing and the drawing: on small packages made here, so that nothing depends on where modules are."""

from pathlib import Path

import pytest

from tests.docs.pages import DOCS


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts of docs/, importable as they are beside docs/generate.py."""
    monkeypatch.syspath_prepend(str(DOCS))


def package(root: Path, files: dict[str, str]) -> Path:
    """A package in a folder of its own."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def test_modules_have_the_first_sentence_of_their_docstring(scripts: None, tmp_path: Path) -> None:
    """Wrapped lines are joined; a module without a docstring has an empty purpose."""
    from package_listing import read_package

    files = {
        "__init__.py": '"""Root."""',
        "a/__init__.py": '"""One thing, e.g.\nmany.\n\nMore."""',
        "a/b.py": '"""Reads x.py. Writes."""',
        "c.py": "",
    }
    found = {module.name: (module.purpose, module.package) for module in read_package(package(tmp_path / "p", files))}
    assert found == {"": ("Root.", True), "a": ("One thing, e.g. many.", True), "a.b": ("Reads x.py.", False), "c": ("", False)}


def test_imports_are_found_however_they_are_written(scripts: None, tmp_path: Path) -> None:
    """Absolute, from, relative, inside a function."""
    from package_listing import read_package, top_level_imports

    files = {
        "__init__.py": "",
        "a/__init__.py": "from ..b import x",
        "a/deep/m.py": "from p import c\nimport os",
        "b.py": "def f():\n    import p.d.e",
        "c.py": "from .d import y",
        "d/__init__.py": "import pp.a",
    }
    found = top_level_imports(read_package(package(tmp_path / "p", files)), "p")
    assert found == {"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}


def test_an_arrow_that_follows_from_others_is_left_out(scripts: None) -> None:
    """a -> c follows from a -> b -> c; a cycle is an error that names it."""
    from package_listing import without_implied

    assert without_implied({"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset()}) == [("a", "b"), ("b", "c")]
    with pytest.raises(SystemExit, match="a -> b -> a"):
        without_implied({"a": frozenset("b"), "b": frozenset("a")})


def test_rows_of_the_drawing_are_the_layers_of_the_contract(scripts: None) -> None:
    """What does not exist is left out; a part without a layer is named."""
    from import_graph import drawing, layers_of

    contracts = [{"type": "layers", "name": "Layers", "containers": ["p"], "layers": ["a | (gone)", "b : c"]}]
    rows = layers_of(contracts, "p", ["a", "b", "c"])
    assert rows == [["a"], ["b", "c"]]
    assert drawing(rows, [("a", "b")]).count("<path") == 2
    with pytest.raises(SystemExit, match="new: expected in a layer"):
        layers_of(contracts, "p", ["a", "new"])
