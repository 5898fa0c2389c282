"""The fixed words of the documents, as enums, and the section table."""

from enum import IntEnum, StrEnum


class ModelLayer(StrEnum):
    """The five-model stack (000 section 3)."""

    REFLEX = "REFLEX"
    NERVES = "NERVES"
    MIND = "MIND"
    VOICE = "VOICE"
    EYES = "EYES"


class Priority(IntEnum):
    """Whose call goes first where calls wait for a model server; more is sooner, as SGLang has it."""

    BATCH = 0
    """Nobody waits: batches, the archival at night."""
    FOLLOW_UP = 1
    """The answer is out: summaries, facts."""
    INTERACTIVE = 2
    """A person waits."""


class OutputFormat(StrEnum):
    """000 section 13.1, and 002's micro-tags."""

    JSON = "json"
    MARKDOWN = "markdown"
    YAML = "yaml"
    TEXT = "text"
    TAGGED = "tagged"
    """Markdown with `<thinking>`, `<draft>` and `<dispatch>` (`text.micro_tags`)."""

    @property
    def is_written(self) -> bool:
        """Whether an answer is prose for people, not a value."""
        return self in (OutputFormat.MARKDOWN, OutputFormat.TEXT, OutputFormat.TAGGED)


class Mode(StrEnum):
    """000 section 10.1."""

    CHAT = "chat"
    CODE = "code"


class TurnState(StrEnum):
    """Where a turn stands. `open` also names one that a crash cut off."""

    OPEN = "open"
    HALTED = "halted"
    CLARIFY = "clarify"
    SAVED = "saved"
    ARCHIVED = "archived"
    ABANDONED = "abandoned"
    """It halted, and a person decided that it ends there."""


class ContentType(StrEnum):
    """What a text is, for its compression (000 section 22)."""

    CONTEXT_DOC = "context.md"
    RESEARCH_DOC = "research.md"
    PAGE_DOC = "page_doc"
    TOOL_RESULT = "tool_result"
    PRIOR_TURN = "prior_turn"
    GENERIC = "generic"


class InterventionType(StrEnum):
    """Why a turn halted (DECISIONS 14)."""

    CONFIG_ERROR = "config_error"
    SCHEMA_VIOLATION = "schema_violation"
    LOW_CONFIDENCE = "low_confidence"
    MISSING_EVIDENCE = "missing_evidence"
    TIMEOUT = "timeout"
    BUDGET_EXCEEDED = "budget_exceeded"
    MISSING_DOCUMENT = "missing_document"
    CORRUPT_DOCUMENT = "corrupt_document"
    RUNTIME_UNREACHABLE = "runtime_unreachable"
    FACT_LOSS = "fact_loss"


SECTION_TITLES = {
    0: "User Query",
    1: "Reflection Decision",
    2: "Gathered Context",
    3: "Task Plan",
    4: "Tool Execution",
    5: "Synthesis",
    6: "Validation",
}
"""Section number of context.md -> its title (004 section 5.2, 11.3)."""

SECTION_BUDGETS = {0: 500, 1: 300, 2: 2_000, 3: 800, 4: 2_500, 5: 2_000, 6: 500}
"""Section number -> tokens it may hold (000 section 11.3)."""
