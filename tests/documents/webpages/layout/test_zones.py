import json

from pandora_dagster.contracts.web.page_doc import PageType, ZoneKind
from tests.documents.webpages.pages import outside, read

ARTICLE = """<html lang="en"><head><title>Why lamps hum | The Lamp Times</title>
<script type="application/ld+json">{"@type":"NewsArticle","headline":"Why lamps hum","datePublished":"2026-02-03",
"author":{"@type":"Person","name":"Ada Byron"}}</script></head>
<body><header><nav><a href="/">Home</a> <a href="/lamps">Lamps</a></nav></header>
<article><h1>Why lamps hum</h1><p class="byline">By Ada Byron, 3 February 2026</p>
<p>A lamp hums because its transformer shakes one hundred times in every second.</p>
<p>The shaking is small, but a thin metal case makes it loud enough to be heard.</p>
<table><tr><th>Lamp</th><th>Hum</th></tr><tr><td>Aurora</td><td>21 dB</td></tr><tr><td>Borealis</td><td>35 dB</td></tr></table>
<p>Correction, 5 February 2026: an earlier version gave the hum of the Aurora as 12 dB.</p></article>
<aside><h2>Newsletter</h2><p>Get our best stories every Sunday by mail.</p></aside>
<div class="cookie-consent" role="dialog"><p>We use cookies to measure our readers.</p><button>Accept</button></div>
<footer><p>© 2026 The Lamp Times</p><a href="/imprint#top">Imprint</a> <a href="mailto:x@example.org">Mail</a></footer></body></html>"""


def test_an_article() -> None:
    doc = read(ARTICLE, url="https://times.example/hum")
    assert (doc.page_type, doc.title, doc.language) == (PageType.ARTICLE, "Why lamps hum", "en")
    assert (doc.extracted_data.author, doc.extracted_data.date, doc.extracted_data.modified) == ("Ada Byron", "2026-02-03", "2026-02-05")
    assert "| Aurora | 21 dB |" in doc.text and "transformer shakes" in doc.text and "an earlier version" in doc.text
    for around in ("Get our best stories", "We use cookies", "© 2026", "Accept"):
        assert around not in doc.text and around in outside(doc) + doc.zones[-1].text
    assert doc.links == ("https://times.example/", "https://times.example/lamps", "https://times.example/imprint")
    assert doc.evidence["author"].confidence > 0.8
    assert [zone.text for zone in doc.zones if zone.kind is ZoneKind.BYLINE] == ["By Ada Byron, 3 February 2026"]


def test_posts_of_a_discussion_keep_author_and_date() -> None:
    posts = "".join(
        f'<div class="post"><b class="user">{name}</b> <span class="when">{day} January 2026</span><p>{text}</p></div>'
        for name, day, text in (
            ("ada", 4, "Does the Aurora lamp hum on your desk as well, or is it only mine?"),
            ("bert", 5, "Mine hums too, and it stops when the foot is on a soft cloth."),
            ("cleo", 6, "It is the transformer. Ask the shop for a new one, they know."),
        )
    )
    doc = read(f"<title>A hum</title><h1>A hum</h1><div>{posts}</div>", url="https://forum.example/t/1")
    assert doc.page_type is PageType.FORUM
    assert (doc.extracted_data.author, doc.extracted_data.date) == ("ada", "2026-01-04")
    found = [(zone.fields["author"], zone.fields["date"]) for zone in doc.zones if zone.kind is ZoneKind.COMMENTS]
    assert found == [("ada", "2026-01-04"), ("bert", "2026-01-05"), ("cleo", "2026-01-06")]


def test_a_cell_that_spans_rows_stays_with_its_heading() -> None:
    doc = read(
        "<main><h1>Lamps</h1><table><tr><th>Maker</th><th>Lamp</th><th>Hum</th></tr>"
        "<tr><td rowspan=2>Nord</td><td>Aurora</td><td>21 dB</td></tr>"
        "<tr><td>Borealis</td><td>35 dB</td></tr><tr><td colspan=2>All others</td><td>40 dB</td></tr></table></main>"
    )
    assert "| Nord | Borealis | 35 dB |" in doc.text
    assert "| All others | All others | 40 dB |" in doc.text


def test_walls_and_soft_errors_are_named() -> None:
    assert read("<h1>Sign in</h1><form><input name=u><input type=password name=p></form>").page_type is PageType.LOGIN
    assert read('<h1>One moment</h1><div class="cf-turnstile"></div><p>Checking your browser</p>').page_type is PageType.CAPTCHA
    assert read("<h1>Un moment</h1><form><input type=checkbox> Je suis une personne</form>").page_type is PageType.CAPTCHA
    assert read("<h1>Bild</h1><form><img src=/c><input name=code><input type=submit></form>").page_type is PageType.CAPTCHA
    for form in (
        "<img src=/c><form><input name=q></form>",
        "<form><input type=checkbox><input type=checkbox></form>",
        "<input type=checkbox>",
    ):
        assert read(f"<h1>Lamps</h1><p>Lamps for every desk.</p>{form}").page_type is not PageType.CAPTCHA
    assert read("<h1>Lamp</h1><p>£24.00</p><form><input type=checkbox> Wrapped</form>").page_type is PageType.PRODUCT
    assert read("<h1>Are you human?</h1><form><label><input type=checkbox>I am not a robot</label></form>").page_type is PageType.CAPTCHA
    consent = "<main><h1>We use cookies</h1><p>Choose to go on.</p><button>Accept</button></main><template><p>Content</p></template>"
    assert read(consent).page_type is PageType.CONSENT
    assert read("<h1>Page not found</h1><p>Try the search.</p>").page_type is PageType.ERROR
    assert read("<h1>Lamps</h1><p>All of our lamps.</p>", status=404).page_type is PageType.ERROR


def test_a_deep_page_is_read() -> None:
    doc = read("<h1>Lamps</h1>" + "<div>" * 30_000 + "<p>Deep inside, a lamp lights the wall.</p>")
    assert "Deep inside" in doc.text
    assert "elements nested deeper than 1000 levels were flattened" in doc.notices


def test_broken_markup_is_read() -> None:
    broken_table = "<table><tr><td>a<td>b</table>"
    doc = read(
        f'<html><body><h1>Lamps</h1><p>One <b>lamp<p>Two lamps light the wall.{broken_table}<div class="x<p>y</div></body></html><p>End'
    )
    assert "Two lamps light the wall." in doc.text
    for broken in (
        "",
        "<",
        "<!--",
        "<html",
        "<p>a&#xFFFF;b&#1;c<!-- &#xFFFE; -->d</p>",
        "&#0;&#xD800;",
        "</p></div>",
        "<svg><title>x</title></svg>",
        "\x00",
        "<a href='http://[::1'>x</a>",
    ):
        assert json.loads(read(broken).model_dump_json())


def test_the_heading_is_that_of_the_page_and_not_of_the_site() -> None:
    site = "<header><h2>The Lamp Times</h2></header><main><h1>About</h1><p>We write about lamps.</p></main>"
    assert read(f"<title>About – The Lamp Times</title>{site}").title == "About"
    post = "<title>Why lamps hum | Ada writes</title><h1>Ada writes</h1>"
    post += "<div><h2>Why lamps hum</h2><p>A transformer shakes in the case.</p></div>"
    assert read(post).title == "Why lamps hum"


def test_a_page_without_a_body_tag_is_read() -> None:
    doc = read(
        "<!doctype html><title>Lamps</title><main><h1>Lamps</h1><p>A lamp lights the wall.</p></main>By hand.<footer>Imprint</footer>"
    )
    assert "lights the wall" in doc.text and "Imprint" not in doc.text


def test_lines_of_one_element_are_not_all_its_byline() -> None:
    text = "The transformer of a lamp shakes one hundred times in every second.<br>A thin metal case makes that loud enough to be heard."
    doc = read(f"<title>Why lamps hum</title><h1>Why lamps hum</h1><div>By Ada Byron, 3 February 2026<br>{text}</div>")
    assert [zone.text for zone in doc.zones if zone.kind is ZoneKind.BYLINE] == ["By Ada Byron, 3 February 2026"]
    assert "shakes one hundred times" in doc.text


def test_the_heading_of_a_page_without_a_heading_element_goes_on_from_its_title() -> None:
    page = (
        "<title>Aurora - Lampland</title><div><a href='/'>Lampland</a></div><div><div class=h>Aurora desk lamp, brass</div>"
        "<div>£24.00</div><div>Hurry, 4 pieces left</div><p>Aurora lights a desk.</p></div><div>Lampland Ltd, 4 Dock Road</div>"
    )
    doc = read(page, url="https://www.lampland.example/a")
    assert (doc.title, doc.extracted_data.price, doc.extracted_data.availability) == ("Aurora desk lamp, brass", "24.00", "limited")


def test_the_name_of_the_site_is_no_heading() -> None:
    page = "<title>Lamps - Lampland</title><ul><li>Aurora £24.00</li><li>Borealis £31.00</li></ul><div>Lampland Ltd, 4 Dock Road</div>"
    assert read(page, url="https://www.lampland.example/c").title == "Lamps"


def test_who_made_a_page_is_read_in_a_line_with_a_day() -> None:
    lines = {"J. Farm": "Issued by J. Farm, Head of Lamps, on 9 October 2026", "Ada Byron": "Ada Byron, first published on 9 October 2026"}
    for author, line in lines.items():
        fields = read(f"<main><h1>Lamps</h1><p>A lamp is out in Dock Road.</p><p>{line}</p></main>").extracted_data
        assert (fields.author, fields.date) == (author, "2026-10-09")
