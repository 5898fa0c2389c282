"""Verification of lineage: each link (this text was made from that text) against the hashes of the stored texts. Changes nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, Relation
from pandora_dagster.contracts.ports.lineage_storage import DocumentTexts
from pandora_dagster.errors import PandoraError


@dataclass(frozen=True, slots=True)
class LinkCheck:
    """The result for one link. `fault`: what is wrong; "" where both texts have the hashes of the row."""

    edge: LineageEdge
    fault: str = ""
    is_unhashed: bool = False
    """The source exists, but its owner may change it at any time, so the link has no hash of it."""
    is_deleted: bool = False
    """One of its texts is an original whose retention is over."""


def check_links(edges: Iterable[LineageEdge], texts: DocumentTexts) -> Iterator[LinkCheck]:
    """Check each link. A text that cannot be read is a fault of its link."""
    for edge in edges:
        fault = _link_fault(edge, texts)
        if fault and any(texts.is_deleted(DocumentId.parse(end)) for end in (edge.child, edge.parent)):
            yield LinkCheck(edge, is_deleted=True)
            continue
        yield LinkCheck(
            edge, fault and f"{edge.relation}: {edge.child} from {edge.parent}: {fault}", is_unhashed=not fault and not edge.parent_sha
        )


def _link_fault(edge: LineageEdge, texts: DocumentTexts) -> str:
    """What is wrong with a link, "" where nothing is. The span of a section is in the child, that of a citation in the parent."""
    child, fault = text_by_hash(edge.child, edge.child_sha, texts)
    if child is None:
        return f"{edge.child}: {fault}"
    parent, fault = text_by_hash(edge.parent, edge.parent_sha, texts)
    if parent is None:
        return f"{edge.parent}: {fault}"
    if edge.span is None:
        return ""
    start, end = edge.span
    spanned = child if edge.relation is Relation.SECTION else parent
    if not start < end <= len(spanned):
        return f"characters {start} to {end}: expected a range within its {len(spanned)}"
    if edge.relation is Relation.SECTION and spanned[start:end] != parent:
        return f"characters {start} to {end} of {edge.child} differ: expected the section"
    return ""


def text_by_hash(document: str, sha: str, texts: DocumentTexts) -> tuple[str | None, str]:
    """The stored text with this hash and "", else None and the fault. Without a hash any text that exists is accepted."""
    other_hashes: list[str] = []
    try:
        for text in texts.candidates(DocumentId.parse(document)):
            digest = sha256(text.encode(errors="surrogatepass")).hexdigest()
            if digest == sha or not sha:
                return text, ""
            other_hashes.append(digest)
    except PandoraError as error:
        return None, "; ".join([*(_hash_fault(digest, sha) for digest in other_hashes[:1]), str(error)])
    return None, _hash_fault(other_hashes[0], sha) if other_hashes else "missing: expected the text that was linked"


def _hash_fault(digest: str, sha: str) -> str:
    return f"changed since it was linked, sha256 {digest[:12]}: expected {sha[:12]}"
