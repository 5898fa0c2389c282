"""Enums of the words that the specifications fix, and the tables of sections."""

from enum import IntEnum, StrEnum


class ModelLayer(StrEnum):
    """The role of a model in the five-model stack (specification 000, section 3); the runtime file maps it to a server."""

    REFLEX = "REFLEX"
    NERVES = "NERVES"
    MIND = "MIND"
    VOICE = "VOICE"
    EYES = "EYES"


class Priority(IntEnum):
    """Priority of a call that waits for a model server; higher is sooner, as in SGLang."""

    BATCH = 0
    """No user waits: batches, nightly archival."""
    FOLLOW_UP = 1
    """After the answer: summaries, facts."""
    INTERACTIVE = 2
    """A user waits."""


class OutputFormat(StrEnum):
    """The format of a recipe's answer (specification 000, section 13.1)."""

    JSON = "json"
    MARKDOWN = "markdown"
    YAML = "yaml"
    TEXT = "text"

    @property
    def is_prose(self) -> bool:
        """Whether an answer is prose for users, not a value."""
        return self in (OutputFormat.MARKDOWN, OutputFormat.TEXT)


class Mode(StrEnum):
    """What a turn is for, which selects its recipes (specification 000, section 10.1)."""

    CHAT = "chat"
    CODE = "code"


class TurnState(StrEnum):
    """The state of a turn. A turn that a crash interrupted is `open` too."""

    OPEN = "open"
    HALTED = "halted"
    CLARIFY = "clarify"
    SAVED = "saved"
    ARCHIVED = "archived"
    ABANDONED = "abandoned"
    """It halted, and a user decided to end it."""


class ContentType(StrEnum):
    """Content type of a text, for its compression (specification 000, section 22)."""

    CONTEXT_DOC = "context.md"
    RESEARCH_DOC = "research.md"
    PAGE_DOC = "page_doc"
    TOOL_RESULT = "tool_result"
    PRIOR_TURN = "prior_turn"
    GENERIC = "generic"


class InterventionType(StrEnum):
    """Why a turn halted (decision 14, docs/decisions/14-the-intervention-record.md)."""

    CONFIG_ERROR = "config_error"
    SCHEMA_VIOLATION = "schema_violation"
    LOW_CONFIDENCE = "low_confidence"
    """Only in records of version 0.1.0: a stated confidence halts nothing (decision 38, docs/decisions/38-confidence.md)."""
    MISSING_EVIDENCE = "missing_evidence"
    TIMEOUT = "timeout"
    BUDGET_EXCEEDED = "budget_exceeded"
    MISSING_DOCUMENT = "missing_document"
    CORRUPT_DOCUMENT = "corrupt_document"
    RUNTIME_UNREACHABLE = "runtime_unreachable"
    FACT_LOSS = "fact_loss"
    NEEDS_APPROVAL = "needs_approval"
    """A tool call that writes, chosen by a recipe of high risk, waits for the user."""
    NEEDS_PERSON = "needs_person"
    """A page that answers wants a login or a captcha, and waits for the user."""


SECTION_TITLES = {
    0: "User Query",
    1: "Reflection Decision",
    2: "Gathered Context",
    3: "Task Plan",
    4: "Tool Execution",
    5: "Synthesis",
    6: "Validation",
}
"""Section number of context.md -> its title (specification 004, section 5.2, 11.3)."""

SECTION_BUDGETS = {0: 500, 1: 300, 2: 2_000, 3: 800, 4: 2_500, 5: 2_000, 6: 500}
"""Section number -> tokens it may hold (specification 000, section 11.3)."""
