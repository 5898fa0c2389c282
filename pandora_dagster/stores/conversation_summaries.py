"""Rolling summaries of sessions: one file a session. Knows nothing of how one is made."""

from pathlib import Path

from pandora_dagster.contracts.conversations import ConversationSummary
from pandora_dagster.contracts.ids import SessionId, UserId, session_id, user_id
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.files import encode_text, path_inside, write_atomic
from pandora_dagster.stores.layout import Layout
from pandora_dagster.stores.locks import file_lock
from pandora_dagster.stores.model_files import find_json_record
from pandora_dagster.stores.sessions import session_folder

_NAME = "conversation_summary.json"


class ConversationSummaryFiles:
    """The ConversationSummaries port over `users/<user>/sessions/<id>/conversation_summary.json`."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._lock_seconds = lock_seconds

    def find(self, user: UserId, session: SessionId) -> ConversationSummary | None:
        """The session's summary, None where there is none yet; raises DocumentError for a damaged one or another's."""
        path = self._folder(user, session) / _NAME
        found = find_json_record(path, ConversationSummary, expected="a conversation summary")
        if found is None:
            return None
        if (found.user_id, found.session_id) != (user, session):
            raise DocumentError(f"{path}: it is of session {found.session_id[:80]!r}: expected {session[:80]!r} of {user}")
        if list(found.turns) != sorted(set(found.turns)) or not set(found.linked) <= set(found.turns):
            raise DocumentError(f"{path}: turns: expected ascending numbers, and `linked` among them")
        return found

    def save(self, summary: ConversationSummary) -> ConversationSummary:
        """Write it, all or nothing, unless one that reaches further stands there (two processes of one session); returns what
        stands there now. Raises StoreError, DocumentError for a damaged one."""
        user, session = user_id(summary.user_id), session_id(summary.session_id)
        folder = self._folder(user, session)
        with file_lock(folder / ".summary.lock", what=f"the summary of session {session}", seconds=self._lock_seconds):
            known = self.find(user, session)
            if known and known.last > summary.last:
                return known
            write_atomic(folder / _NAME, encode_text(_NAME, summary.model_dump_json(indent=1) + "\n"))
        return summary

    def _folder(self, user: UserId, session: SessionId) -> Path:
        return path_inside(self._layout.root, self._layout.session(user, session_folder(session)))
