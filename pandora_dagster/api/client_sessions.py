"""Which session a request belongs to: the one that the client names, or the one whose last answer ends the messages that it sends.

Chat clients send the whole conversation with each request and no name for it. Two conversations that begin alike are two sessions.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.turn_request import SESSION_HEADER, TurnRequest, conversation_hash
from pandora_dagster.app import App
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId, session_id
from pandora_dagster.contracts.user.conversations import Continuation
from pandora_dagster.documents.conversation_messages import INSTRUCTION_ROLES
from pandora_dagster.errors import PandoraError, UnknownTurnError

_SESSION_BYTES = 10


@dataclass(frozen=True, slots=True)
class ChosenSession:
    """The session of a request."""

    id: SessionId
    found: Continuation | None = None
    """The place that was claimed for a request that names no session."""


@dataclass(frozen=True, slots=True)
class ClientSessions:
    """The sessions of clients."""

    app: App

    def choose(self, request: TurnRequest) -> ChosenSession:
        """Claim the session of a request; a new one where the client names none and its messages end with no answer of this server.

        A claimed place is gone from the store; `offer` or `offer_again` stores one again.

        Raises ApiError where the turn that the request names as the one before is not the user's, or of another session than it names.
        """
        if request.previous is not None:
            return ChosenSession(self._session_of(request.previous, request))
        if request.session is not None:
            return ChosenSession(request.session)
        if any(message.get("role") not in INSTRUCTION_ROLES for message in request.earlier):
            for place in self.app.continuations.claim(request.user, conversation_hash(request.earlier)):
                if self._newest_turn(request.user, place.session_id) == place.turn_id:
                    return ChosenSession(session_id(place.session_id), place)
        return ChosenSession(session_id(f"chat-{secrets.token_hex(_SESSION_BYTES)}"))

    def offer(self, request: TurnRequest, key: TurnKey, session: SessionId, delivered: str) -> None:
        """Let a request that repeats this one and its answer, as the client got it, go on in this session."""
        if request.session is None and request.previous is None:
            said: list[Mapping[str, str]] = [{"role": "user", "content": request.query}, {"role": "assistant", "content": delivered}]
            place = Continuation(session_id=session, turn_id=key.turn_id)
            self.app.continuations.offer(request.user, conversation_hash([*request.earlier, *said]), place)

    def offer_again(self, request: TurnRequest, key: TurnKey | None, chosen: ChosenSession) -> None:
        """Give back the place of a request that got no answer: the client may repeat it. `key`: its turn, if that had started."""
        if chosen.found is not None:
            place = chosen.found.model_copy(update={"turn_id": key.turn_id}) if key else chosen.found
            self.app.continuations.offer(request.user, conversation_hash(request.earlier), place)

    def _newest_turn(self, user: UserId, session: str) -> str | None:
        rows = self.app.dependencies.index.rows(user, session=session, limit=1)
        return rows[-1].turn_id if rows else None

    def _session_of(self, previous: TurnKey, request: TurnRequest) -> SessionId:
        unknown = ApiError(
            404, f"previous_response_id: {request.user} has no such response: expected the id of an earlier one",
            param="previous_response_id", code="previous_response_not_found",
        )  # fmt: skip
        if previous.user != request.user:
            raise unknown
        try:
            session = session_id(self.app.turns.manifest(previous).session_id)
        except UnknownTurnError:
            raise unknown from None
        except PandoraError as error:
            raise ApiError(500, error.with_hint, type="server_error", code="failed") from None
        if request.session not in (None, session):
            message = f"{SESSION_HEADER}: {request.session}: expected {session}, the session of previous_response_id, or no header"
            raise ApiError(400, message, param="previous_response_id", code="other_session")
        return session
