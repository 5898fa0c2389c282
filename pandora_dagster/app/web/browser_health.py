"""What `pandora doctor` says of the browser that renders pages of the web."""

from collections.abc import Iterator
from importlib.util import find_spec

from pandora_dagster.app.health import Finding
from pandora_dagster.app.web.page_rendering import INSTALL_HINT
from pandora_dagster.errors import BrowserError
from pandora_dagster.settings import Settings
from pandora_dagster.tools.browser.chromium import find_chromium

_LIBRARY = "playwright"


def browser_findings(settings: Settings) -> Iterator[Finding]:
    """The Chromium that is found; nothing where no page of the web is rendered."""
    if settings.web == "off" or settings.browser == "off":
        return
    try:
        if find_spec(_LIBRARY) is None:
            raise BrowserError(f"{_LIBRARY}: not installed", hint=INSTALL_HINT)
        yield Finding("browser", True, f"{find_chromium(settings.chromium)} renders pages of the web that need it")
    except BrowserError as error:
        yield Finding("browser", False, f"{error}; pages are read without their scripts", f"{error.hint}, or set PANDORA_BROWSER=off")
