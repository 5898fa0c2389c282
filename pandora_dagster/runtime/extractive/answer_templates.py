"""Every word that the embedded runtime says by itself: one frozen table. All other words of an answer are in its input."""

from collections.abc import Mapping
from types import MappingProxyType

TEMPLATES: Mapping[str, str] = MappingProxyType(
    {
        "greeting": "Hello! What would you like to know?",
        "no_longer": "no longer current",
        "noted": "Noted:",
        "welcome": "You are welcome.",
        "stored": "I have stored this:",
        "not_stored": "I could not store this:",
        "ask_meaning": "What do you mean by",
        "ask_open": "What would you like to know?",
        "long_query": "The query is longer than this answer may be; it stands in section 0.",
        "referred": "The query refers to this turn.",
        "recent": "Among the newest turns; the query asks about the past.",
        "offered": "Offered by the index; its summary shares no word with the query.",
        "no_match": "No source shares a word with the query.",
        "chosen": "Chosen by the words that the sources share with the query.",
        "kind": "Decided by the words of the query.",
        "clear": "The query says what it is about.",
        "unclear": "The query does not say what it is about, and no earlier turn does.",
        "enough": "Section 2 answers the query.",
        "no_tool": "No tool can find more; section 2 is what there is.",
        "missing": "Section 2 does not answer the query.",
        "statement": "The query states something to remember.",
        "search_task": "Search the documents for:",
        "query_task": "Look up in memory:",
        "create_task": "Store in memory:",
        "next_task": "The next task without a result.",
        "all_done": "Every task has its result.",
        "not_registered": "This tool is not registered:",
        "failed_twice": "This tool failed twice:",
        "tool_choice": "The tool that the command asks for.",
        "approved": "Every citation resolves, and its source supports the statement.",
        "revise": "The sources do not support every statement of the answer.",
        "empty": "The answer is empty.",
        "citation_issue": "This citation leads to no source:",
        "no_meaning": "This runtime does not judge meaning.",
        "hours": "hours",
        "ago": "ago",
        "expired": "expired",
        "seen": "seen",
        "unnamed": "statement",
        "topic_conversation": "conversation",
        "topic_turn": "turn",
    }
)
"""Name -> text. Frozen; the law "no invented word" is tested against it."""
