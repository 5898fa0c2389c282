import codecs

import pytest

from pandora_dagster.documents.webpages.charset import decode

GERMAN = "<p>Die Lampe kostet für Käufer aus Österreich 20 € mehr, schöne Grüße</p>"
RUSSIAN = "<p>Эта лампа освещает стол и стену за ним, она стоит недорого.</p>"


@pytest.mark.parametrize(
    ("body", "content_type", "encoding", "text"),
    [
        (GERMAN.encode(), "text/html; charset=utf-8", "utf-8", GERMAN),
        (GERMAN.encode("cp1252"), "text/html; charset=utf-8", "cp1252", GERMAN),
        (GERMAN.encode(), "text/html; charset=iso-8859-1", "utf-8", GERMAN),
        (GERMAN.encode("cp1252"), "text/html; charset=ISO-8859-1", "cp1252", GERMAN),
        (b'<meta charset="windows-1251">' + RUSSIAN.encode("cp1251"), "text/html", "cp1251", RUSSIAN),
        (b'<meta charset="windows-1251">' + RUSSIAN.encode("cp1251"), "text/html; charset=utf-8", "cp1251", RUSSIAN),
        (RUSSIAN.encode("koi8-r"), "text/html; charset=koi8-r", "koi8-r", RUSSIAN),
        (codecs.BOM_UTF8 + GERMAN.encode(), "text/html; charset=iso-8859-1", "utf-8", GERMAN),
        (codecs.BOM_UTF16_LE + GERMAN.encode("utf-16-le"), "text/html", "utf-16-le", GERMAN),
        ("<p>東京の天気は晴れです。</p>".encode("shift_jis"), "text/html; charset=shift_jis", "cp932", "東京の天気は晴れです。"),
        (b"<p>plain</p>", "text/html; charset=no-such", "utf-8", "<p>plain</p>"),
        (b"", "", "utf-8", ""),
    ],
)
def test_bytes_are_read_by_evidence(body: bytes, content_type: str, encoding: str, text: str) -> None:
    decoded = decode(body, content_type)
    assert text in decoded.text
    assert decoded.encoding == encoding


def test_a_label_that_lies_is_reported() -> None:
    assert decode(GERMAN.encode("cp1252"), "text/html; charset=utf-8").notices == ("the header says utf-8, its bytes are cp1252",)


def test_text_without_a_label_is_detected() -> None:
    assert decode((RUSSIAN * 20).encode("cp1251"), "text/html").text == RUSSIAN * 20


def test_utf8_with_single_faults_stays_utf8() -> None:
    assert decode((RUSSIAN * 5).encode() + b"\xff", "text/html; charset=utf-8").encoding == "utf-8"


def test_control_characters_are_left_out_and_reported() -> None:
    decoded = decode(b"<p>a\x00b\x01c\td\r\n</p>", "text/html")
    assert decoded.text == "<p>abc\td\r\n</p>"
    assert decoded.notices == ("2 control characters left out",)
