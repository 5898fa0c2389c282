"""The limiter's memory on the disk."""

import multiprocessing

import pytest

from pandora_dagster.compression.summarization_rate import LimiterState, SummarizationRateLimiter
from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.user.session_files import LimiterFiles, SessionFiles

ANNA, TRIP = UserId("anna"), SessionId("trip")
STATE = LimiterState((1_795_000_000.25, 1_795_000_001.5), 7, 2, 1, 1_795_000_003.5)


def test_a_state_reads_back(tmp_path):
    """What was saved last is loaded, per user and session; nothing saved is None."""
    files = LimiterFiles(tmp_path)
    assert files.load(ANNA, TRIP) is None
    files.save(ANNA, TRIP, STATE)
    assert LimiterFiles(tmp_path).load(ANNA, TRIP) == STATE
    assert files.load(UserId("bob"), TRIP) is None and files.load(ANNA, SessionId("other")) is None
    files.save(ANNA, TRIP, LimiterState())
    assert files.load(ANNA, TRIP) == LimiterState()


def test_any_session_id_has_a_folder_of_its_own(tmp_path):
    """Ids with signs that no folder may have are kept apart."""
    files = LimiterFiles(tmp_path)
    files.save(ANNA, SessionId("../a b"), STATE)
    assert files.load(ANNA, SessionId("../a b")) == STATE and files.load(ANNA, SessionId("../a-b")) is None
    assert all(path.is_relative_to(tmp_path / "users" / "anna" / "sessions") for path in tmp_path.rglob("limiter.json"))


def test_a_session_without_a_record_stays_without_one(tmp_path):
    """A limiter's file makes no imported conversation."""
    LimiterFiles(tmp_path).save(ANNA, TRIP, STATE)
    assert list(SessionFiles(tmp_path).records(ANNA)) == [] and SessionFiles(tmp_path).find(ANNA, TRIP) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"calls": [-1], "session_calls": 0, "errors": 0, "consecutive_errors": 0, "backoff_until": 0}']
)
def test_a_damaged_file_is_named(tmp_path, text):
    """A limit is not forgotten in silence: DocumentError with the path."""
    files = LimiterFiles(tmp_path)
    files.save(ANNA, TRIP, STATE)
    path = next(tmp_path.rglob("limiter.json"))
    path.write_text(text)
    with pytest.raises(DocumentError, match=r"limiter\.json: .*expected"):
        files.load(ANNA, TRIP)


def test_a_session_goes_on_after_a_restart(tmp_path):
    """A process that starts later with another monotonic clock still counts the calls and the backoff of the one before."""
    first = SummarizationRateLimiter(2, 3, clock=lambda: 9_000.0)
    first.record_call()
    first.record_call()
    first.record_rate_limit_error()
    LimiterFiles(tmp_path).save(ANNA, TRIP, first.state(wall=1_000.0))
    saved = LimiterFiles(tmp_path).load(ANNA, TRIP)
    assert saved is not None
    second = SummarizationRateLimiter.from_state(saved, 2, 3, clock=lambda: 5.0, wall=1_001.0)
    assert second.is_rate_limited and second.calls_remaining_in_window == 0 and second.calls_remaining_in_session == 1
    assert not second.can_call(now=5.0 + 58.9) and second.can_call(now=5.0 + 59.0)


def _count_ten(root):
    for _ in range(10):
        LimiterFiles(root).update(ANNA, TRIP, lambda known: LimiterState(session_calls=(known or LimiterState()).session_calls + 1))


def test_no_call_of_two_processes_is_lost(tmp_path):
    """Two processes of one session that count at the same time count all their calls."""
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_count_ten, args=(tmp_path,)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert LimiterFiles(tmp_path).load(ANNA, TRIP) == LimiterState(session_calls=20)
