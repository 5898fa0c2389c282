"""The system's Chromium: where it is, and how it is started."""

import os
import shutil
from pathlib import Path

from pandora_dagster.errors import BrowserError

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL_HINT = "install Chromium (apt-get install chromium) or name it with PANDORA_CHROMIUM"
_SWITCHES = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-client-side-phishing-detection",
    "--dns-prefetch-disable",
    "--no-pings",
    "--no-first-run",
    "--mute-audio",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--proxy-bypass-list=<-loopback>",
    "--js-flags=--max-old-space-size=512",
)


def find_chromium(named: str) -> Path:
    """The program `named` (a path or a name on PATH), else the first of `PROGRAMS`; raises BrowserError."""
    for program in (named,) if named else PROGRAMS:
        if found := shutil.which(program):
            return Path(found)
    raise BrowserError(f"{named or 'Chromium'}: no such program: expected Chromium", hint=INSTALL_HINT)


def switches() -> list[str]:
    """The command line of Chromium. Its sandbox cannot be used by root, as in a container."""
    return [*_SWITCHES, *(("--no-sandbox",) if os.geteuid() == 0 else ())]
