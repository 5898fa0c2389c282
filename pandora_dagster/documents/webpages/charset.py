"""The text of a page's bytes: its encoding by evidence, not by what a header says alone."""

import codecs
import re
from dataclasses import dataclass

from pandora_dagster.documents.webpages.libraries import library

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""In this order: the mark of UTF-32-LE begins with the one of UTF-16-LE."""
_LABEL = re.compile(r"charset\s{0,3}=\s{0,3}[\"']?\s{0,3}([\w.:-]{1,40})", re.IGNORECASE)
_META = re.compile(
    rb"<meta\b[^>]{0,400}?charset\s{0,3}=\s{0,3}[\"']?\s*([\w.:-]{1,40})|<\?xml\b[^>]{0,200}?encoding\s{0,3}=\s{0,3}[\"']([\w.:-]{1,40})",
    re.IGNORECASE,
)
_META_BYTES = 4096
_SAMPLE_BYTES = 100_000
_MAX_DAMAGE = 0.02
"""Undecodable bytes for each byte outside ASCII: below it a text is UTF-8 with faults."""
_MAX_MESS = 0.2
"""A share of improbable characters above it shows that a label is wrong (charset_normalizer's measure, whose own limit is 0.2)."""
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters that no document has; numeric references can name them all the same."""


@dataclass(frozen=True, slots=True)
class DecodedText:
    """`text` has no control characters but tabs and line ends."""

    text: str
    encoding: str
    notices: tuple[str, ...]


def decode(body: bytes, content_type: str) -> DecodedText:
    """The text of `body`; never raises. A label that the bytes contradict is a notice."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], encoding, "")
    header = _codec(found[1] if (found := _LABEL.search(content_type)) else "")
    meta = _codec(
        next((g for g in found.groups() if g), b"").decode("ascii", "replace") if (found := _META.search(body[:_META_BYTES])) else ""
    )
    if meta.startswith("utf-16"):  # a label that was read as ASCII cannot be UTF-16
        meta = "utf-8"
    labels = list(dict.fromkeys(label for label in (header, meta) if label))
    encoding = _by_evidence(body, labels)
    claim = f"the header says {header}" if header else f"the page says {meta}" if meta else ""
    wrong = bool(labels) and not body.isascii() and encoding != labels[0]
    return _decoded(body, encoding, f"{claim}, its bytes are {encoding}" if wrong else "")


def _decoded(body: bytes, encoding: str, notice: str) -> DecodedText:
    text = body.decode(encoding, "replace")
    clean = CONTROL_CHARACTERS.sub("", text.replace("\x0c", "\n"))
    notices = [notice] if notice else []
    if len(clean) < len(text):
        notices.append(f"{len(text) - len(clean)} control characters left out")
    return DecodedText(clean, encoding, tuple(notices))


def _by_evidence(body: bytes, labels: list[str]) -> str:
    if body.isascii() and b"\x1b" not in body:
        return next((label for label in labels if not label.startswith("utf-16")), "utf-8")
    if _is_utf8(body) and not any(label.startswith(("utf-16", "iso2022", "hz")) for label in labels):
        return "utf-8"
    fitting = [label for label in labels if label != "utf-8" and _fits(body, label)]
    if fitting:
        return min(fitting, key=lambda label: _mess(body, label)) if len(fitting) > 1 else fitting[0]
    return _detected(body)


def _is_utf8(body: bytes) -> bool:
    """Whether bytes are UTF-8, but for a few faults: text in another encoding is hardly ever valid by chance."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        outside = sum(map(len, re.findall(rb"[\x80-\xff]+", body)))
        return body.decode("utf-8", "replace").count("\ufffd") <= outside * _MAX_DAMAGE
    return True


def _fits(body: bytes, encoding: str) -> bool:
    try:
        body.decode(encoding)
    except UnicodeDecodeError:
        return False
    return _mess(body, encoding) <= _MAX_MESS


def _mess(body: bytes, encoding: str) -> float:
    text = body[:_SAMPLE_BYTES].decode(encoding, "replace")
    foreign = " ".join(word for word in text.split() if not word.isascii())
    return float(library("charset_normalizer.md").mess_ratio(foreign[:4000]))


def _detected(body: bytes) -> str:
    """The detected encoding; of two that fit as well, the one that pages without a label are in most often."""
    best = library("charset_normalizer").from_bytes(body[:_SAMPLE_BYTES]).best()
    found = _codec(best.encoding) if best else ""
    return "cp1252" if not found or (_fits(body, "cp1252") and _mess(body, "cp1252") <= _mess(body, found)) else found


def _codec(label: str) -> str:
    """Python's name for a label of the WHATWG Encoding Standard; "" for one that is not known."""
    known = library("webencodings").lookup(label) if label else None
    if known is not None:
        return str(known.codec_info.name)
    try:
        return codecs.lookup(label).name if label else ""
    except LookupError:
        return ""
