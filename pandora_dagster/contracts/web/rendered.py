"""A page as a browser shows it, and the port that renders it."""

from dataclasses import dataclass
from typing import Protocol

from pandora_dagster.contracts.web.fetched import FetchedPage


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """The elements of a page after its scripts ran, with a mark on everything that a visitor does not see."""

    html: str
    """Without scripts and style sheets; shadow trees and frames of the same origin are part of it."""
    invisible_attribute: str
    """The name of the attribute that marks invisible elements, random for each page; "no" as its value marks a visible one inside."""
    notices: tuple[str, ...] = ()
    """What a reader should know: dialogues that were closed, requests that were refused, limits that were reached."""
    pictures: frozenset[str] = frozenset()
    """Names of the kinds of elements that show pictures: img, canvas, svg, object, embed, video."""
    screenshot: bytes = b""
    """The window as PNG; empty where it was not asked for."""


class Renderer(Protocol):
    """A browser. Callers on several threads may share one."""

    def render(self, page: FetchedPage, *, deadline_s: float, screenshot: bool = False) -> RenderedPage:
        """Run the scripts of a fetched page; the page itself is not requested again. Raises BrowserError."""
        ...
