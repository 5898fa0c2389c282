"""Credentials are taken out by their shape; what only looks random stays."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.documents.redaction.credentials import REDACTED, holds_secret, redact

# Made of pieces, so that no scanner takes the table for a leak.
LONG = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
KEY_BLOCK = "-----BEGIN {0}PRIVATE KEY-----\nMIIE\nabc\n-----END {0}PRIVATE KEY-----"
SECRETS = {
    "OpenAI": f"key sk-{LONG} here",
    "OpenAI project": f"sk-proj-{LONG}_{LONG}",
    "Anthropic": f"sk-ant-api03-{LONG}-{LONG}",
    "Stripe": f"sk_live_{LONG}",
    "AWS": "AKIA" + "ABCDEFGH23456789",
    "AWS secret": f"aws_secret_access_key = {LONG}",
    "GitHub": f"ghp_{LONG}",
    "GitHub fine": f"github_pat_{LONG}",
    "GitLab": f"glpat-{LONG}",
    "Hugging Face": f"hf_{LONG}",
    "Google": "AIza" + LONG[:35],
    "Slack": f"xoxb-{LONG}",
    "JWT": f"eyJhbGciOiJI.eyJzdWIiOiIx.{LONG}",
    "Bearer": f"curl -H 'x: Bearer {LONG}'",
    "Authorization": f"Authorization: Basic {LONG}==",
    "Authorization plain": f"authorization: {LONG}",
    "Authorization in JSON": f'{{"Authorization": "Bearer {LONG}"}}',
    "Authorization in escaped JSON": f'"{{\\"Authorization\\": \\"Bearer {LONG}\\"}}"',
    "cookie": f"Cookie: session={LONG}; theme=dark",
    "password=": f"host=x password={LONG} port=1",
    "password in an URL's query": f"https://x.org/?user=a&password={LONG}&b=c",
    "password in an URL": f"postgres://anna:{LONG}@db:5432/x",
    "password in JSON": f'{{"password": "{LONG} with blanks"}}',
    "password in escaped JSON": f'"{{\\"api_key\\": \\"{LONG}\\"}}"',
    "password in YAML": f"db_password: {LONG}",
    "password in quotes": f"password = '{LONG}'",
    "environment": f"export OPENAI_API_KEY={LONG}",
    "API key in words": f"API key: {LONG}",
    "token in JSON": f'{{"token": "{LONG}"}}',
    "token=": f"https://x.org/?token={LONG}&b=c",
    "npm": f"npm_{LONG}",
    "password in a sentence": f"my password is {LONG}.",
    "RSA key": KEY_BLOCK.format("RSA "),
    "key": KEY_BLOCK.format(""),
    "cut key": KEY_BLOCK.format("EC ")[:45] + LONG,
}
WORD = "correct" + "horse"
MIXED = "hun" + "ter2"
SAID = {
    "my password is {}": WORD,
    "The password is: {}": WORD,
    "The password for the wiki is {}, please keep it": WORD,
    'the passphrase is "{}"': WORD + " battery staple",
    "password: {}": WORD,
    "user: anna, password: {}, host: db1": WORD,
    "passwd {}": MIXED,
    "export DB_PASS={} LOUD=1": WORD,
    "pw: {}": WORD,
    "The old password was {}.": WORD,
    "access token {} expires soon": "ya" + f"29.{LONG}",
    "use access token {}": LONG,
    "mail key {}": "S" + f"G.{LONG[:22]}.{LONG}",
    "post to https://hooks.slack.com/services/{} now": "/".join(("T" + LONG[:8].upper(), "B" + LONG[8:16].upper(), LONG[:24])),
    "droplet {}": "do" + "p_v1_" + "0123abcd" * 8,
    "AccountName=a;AccountKey={};EndpointSuffix=x": LONG * 2 + "==",
    "aws secret {}": LONG + "Zz12",
    "https://x.org/blob?sv=1&sig={}&se=2": LONG,
    "https://x.org/blob?signature={}": LONG,
    "ssn {} of Ann": "-".join(("123", "45", "6789")),
    "my social security number is {}": "-".join(("123", "45", "6789")),
    "the CVV is {}": "12" + "3",
    "my PIN is {}.": "47" + "11",
    "PIN: {}": "47" + "11",
    "the security code on the back is {}": "12" + "3",
    "your OTP is {}, do not share it": "4711" + "08",
    "Passwort: {}": WORD,
    "Das Passwort lautet {}": MIXED,
    "contraseña: {}": WORD,
    "mot de passe : {}": WORD,
    "密码是{}": MIXED,
    "パスワードは{}です": MIXED,
    "비밀번호는 {} 입니다": MIXED,
}
"""What people write, with a place for the secret; and the secret."""
HARMLESS = [
    "the password policy is strict",
    "a password reset was sent; the password is required, my password is not working, your password is wrong.",
    "password: required. Password is case-sensitive. The password was reset. password: string",
    "token budget: 500, the secret is out, the secret of good bread is time, a secret ballot",
    "I pinned note 300. The spinning top costs 4711 euros, pin it to the wall; 300 pins; OTP: see below",
    "the access token has expired, an access token for each of 1200 users",
    "social security pays 1200 a month, flight SG 1234 is late, the signature=none rule",
    "Das Passwort ist falsch. Passwort: siehe unten. El cambio de contraseña es obligatorio. 密码是必须的 パスワードは必須です",
    "make pass: 12, tests pass=12, bypass: true, the compass: north, pw is short for password",
    "Reservation 8JX2WO for mia_li_3668, flight HAT169, payment credit_card_4421486",
    "sha256 223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "commit b539255, order #W5744371, id 550e8400-e29b-41d4-a716-446655440000",
    "the password must have 12 letters; passwords: see the policy",
    "Please reset my password: it is forgotten. Is the password known?",
    "tokens: 1540, token_budget: {total: 5750}, prompt_tokens=12345678, max_output_tokens=2000",
    "token count: 1234, token: 12345678901234567890, the token: acknowledgement, my password is forgotten, my password is gone since 2019",
    "the bearer of this ticket; bearer bonds are internationally traded",
    "sk-learn-and-other-hyphenated-library-names, task-force-of-many-people, risk-1234567890123456789",
    "AKIA is the prefix of a key, ASIA a continent",
    "https://example.org:8080/path@v2 and mailto:anna@example.org, 12:30@noon",
    "Authorization is needed. The authorization: see below",
    '{"api_key": null, "password": "", "password_hint": "blue"}',
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "Lenovo LOQ 15 @ $697.00, NVIDIA RTX 4050 [1]",
    "call_9f8e7d6c5b4a39281706f5e4d3c2b1a0, turn_000811, int_20261121_153012_ab12",
]


@pytest.mark.parametrize("case", SECRETS)
def test_a_credential_is_taken_out(case):
    """No piece of the secret stays; the text around it does."""
    clean = redact(SECRETS[case])
    assert REDACTED in clean
    assert LONG[:20] not in clean and "MIIE" not in clean and "ABCDEFGH23456789" not in clean
    for around in ("key ", " here", "host=x ", " port=1", "&b=c", "postgres://anna:", "@db:5432/x", "export OPENAI_API_KEY="):
        assert (around in SECRETS[case]) <= (around in clean)


@pytest.mark.parametrize("sentence", SAID)
def test_what_people_write_is_taken_out(sentence):
    """The secret alone; the words around it stay, and nothing more is found in them."""
    clean = redact(sentence.format(SAID[sentence]))
    assert clean == sentence.format(REDACTED)
    assert holds_secret(sentence.format(SAID[sentence])) and redact(clean) == clean and not holds_secret(clean)


FILLER = "The office ordered a desk on Monday, and it came in week twelve with a lamp and three drawers.\n" * 30
BEGUN_BEFORE = {
    "Set-Cookie: {}": f"session={LONG}",
    "Proxy-Authorization: {}": f"Basic {LONG}",
    "https://x.org/?a=1&x-goog-signature={}": LONG,
    "db_refresh_token: '{}'": LONG,
    'my_client_secret = "{}"': LONG,
    "the verification code is {}": "4711" + "08",
    "a+.-bcdefghijklmnopqrst://anna:{}@db": LONG,
    "paſſword={}": LONG,
}
"""Forms whose known word stands far from their beginning, or in letters that small ones are not."""


@pytest.mark.parametrize("sentence", [*SAID, *BEGUN_BEFORE])
def test_what_people_write_is_taken_out_of_a_long_text(sentence):
    """A long text is searched only where a form can begin: what is found in it is what is found in the sentence alone."""
    secret = SAID.get(sentence) or BEGUN_BEFORE[sentence]
    assert redact(FILLER + sentence.format(secret) + "\n" + FILLER) == FILLER + sentence.format(REDACTED) + "\n" + FILLER


@pytest.mark.parametrize("case", SECRETS)
def test_a_credential_is_taken_out_of_a_long_text(case):
    """The same as out of a short one, and the text around it stays; also where small letters are more than large ones were."""
    for filler in (FILLER, "İ" + FILLER):
        assert redact(f"{filler}{SECRETS[case]}\n-----\n{filler}").startswith(filler + redact(SECRETS[case] + "\n-----")[:-6])


@pytest.mark.parametrize("digits", ["4111 1111 1111 1111", "4111-1111-1111-1111", "3782 822463 10005", "card 4111111111111111"])
def test_a_card_is_taken_out_of_a_long_text(digits):
    """Its digits are seen however they are grouped, among letters of any script."""
    for around in ("", "Карта 卡 "):
        number = digits.removeprefix("card ")
        assert redact(f"{FILLER}{around}{digits}. {FILLER}") == f"{FILLER}{around}{digits.replace(number, REDACTED)}. {FILLER}"


@pytest.mark.parametrize(
    "begun", ["password is ", "pw: ", "ssn ", "pin is ", "secret ", "?sig=", "Passwort: ", "密码是", "token=a", "password for a "]
)
def test_the_time_grows_with_the_text_only(begun):
    """Beginnings of secrets over and over: eight times the text takes no more than about eight times as long."""

    def seconds(times: int) -> float:
        text = begun * times
        took: list[float] = []
        for _ in range(3):
            start = time.process_time()
            redact(text)
            took.append(time.process_time() - start)
        return min(took)

    assert seconds(16_000) < 32 * seconds(2_000) + 0.05


def test_a_project_key_without_digits_is_taken_out():
    """Its prefix is enough."""
    assert redact("sk-proj-" + "abcdefgh" * 4) == REDACTED


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_random_stays(text):
    """Order ids, hashes, flight numbers, prose about passwords, counts of tokens."""
    assert redact(text) == text


@pytest.mark.parametrize("case", SECRETS)
def test_taking_out_twice_changes_nothing_more(case):
    """So that texts which quote kept texts are kept once."""
    assert redact(redact(SECRETS[case])) == redact(SECRETS[case])


@given(st.lists(st.sampled_from([*HARMLESS, *SECRETS.values()]), max_size=5))
@settings(max_examples=60, deadline=None)
def test_secrets_are_found_among_other_lines(lines):
    """Wherever they stand in a longer text."""
    assert LONG[:20] not in redact("\n".join(lines))


def test_a_line_begins_after_an_escaped_line_break():
    """Prompt packs and call records are JSON: the word before the credential has the letter of the escape in front of it."""
    text = json.dumps({"user": "Who asks?\npassword: Tr0ub4dor&3xyz is mine\n\tpasswd=hunter22"})
    assert json.loads(redact(text)) == {"user": "Who asks?\npassword: [redacted] is mine\n\tpasswd=[redacted]"}
    assert redact(redact(text)) == redact(text)
