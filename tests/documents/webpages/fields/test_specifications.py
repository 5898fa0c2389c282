import pytest

from tests.documents.webpages.fields.test_prices import shop
from tests.documents.webpages.pages import read

WANTED = {"Power": "12 W", "Weight": "800 g", "Cable": "2 m"}


@pytest.mark.parametrize(
    ("frame", "row"),
    [
        ("<table>{}</table>", "<tr><th>{}</th><td>{}</td></tr>"),
        ("<table>{}</table>", "<tr><td>{}:</td><td>{}</td></tr>"),
        ("<dl>{}</dl>", "<dt>{}</dt><dd>{}</dd>"),
        ("<ul>{}</ul>", "<li>{}: {}</li>"),
        ("<ul>{}</ul>", "<li><span>{}</span> <span>{}</span></li>"),
        ("<div>{}</div>", '<div class="row"><div>{}</div><div>{}</div></div>'),
        ("<div>{}</div>", "<p><b>{}:</b> {}</p>"),
        ("<div>{}</div>", "<div>{}</div><div>{}</div>"),
        ("<div>{}</div>", '<div class="name">{}</div><div class="value">{}</div>'),
    ],
)
def test_names_and_values_in_each_form(frame: str, row: str) -> None:
    listed = frame.format("".join(row.format(name, value) for name, value in WANTED.items()))
    assert read(shop(f"<p>£24.00</p>{listed}")).extracted_data.specs == WANTED


@pytest.mark.parametrize("texts", [("One", "Two", "Three", "Four", "Five", "Six"), ("In 1", "Out 2", "Up 3", "Down 4", "On 5", "Off 6")])
def test_short_texts_in_turn_are_no_specification(texts: tuple[str, ...]) -> None:
    listed = "".join(f"<div>{text}</div>" for text in texts)
    assert read(shop(f"<p>£24.00</p><div>{listed}</div>")).extracted_data.specs == {}


def test_a_page_of_specifications_with_a_day_is_no_article() -> None:
    rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in WANTED.items())
    doc = read(f"<title>Aurora - Maker</title><main><h1>Aurora</h1><table>{rows}</table><p>On sale from 3 November 2026</p></main>")
    assert doc.page_type == "spec"
    assert doc.extracted_data.specs == WANTED


def test_text_is_no_specification() -> None:
    assert read(shop("<p>£24.00</p><p>Remember: a lamp is hot. Never touch it.</p>")).extracted_data.specs == {}
