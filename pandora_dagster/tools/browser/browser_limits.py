"""What the rendering of one page may use and do."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrowserLimits:
    """The limits of one rendered page, and how many are rendered at the same time."""

    seconds: float = 30.0
    quiet_seconds: float = 6.0
    """The longest wait for a page to become quiet."""
    requests: int = 300
    """For files of the page and for the robots.txt of their hosts."""
    hosts: int = 8
    """From which files of the page come, its own included."""
    total_bytes: int = 30_000_000
    accept_privacy: bool = False
    """Whether the only button of a dialogue about privacy is pressed where the page shows nothing without an answer."""
    more_steps: int = 10
    """How often a list that loads more is continued."""
    pages_at_once: int = 2
    width: int = 1280
    height: int = 800
    screenshot_width: int = 1024
