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
    ],
)
def test_names_and_values_in_each_form(frame: str, row: str) -> None:
    listed = frame.format("".join(row.format(name, value) for name, value in WANTED.items()))
    assert read(shop(f"<p>£24.00</p>{listed}")).extracted_data.specs == WANTED


def test_text_is_no_specification() -> None:
    assert read(shop("<p>£24.00</p><p>Remember: a lamp is hot. Never touch it.</p>")).extracted_data.specs == {}
