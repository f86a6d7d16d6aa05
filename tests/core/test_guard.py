"""Secrets are found by shape, said by kind and line, and never shown; ordinary text passes."""

import json

import pytest

from amux.core import guard
from amux.errors import AmuxError, InvalidArgument, SecretDetected
from tests.support import documents
from tests.support.growth import require_linear
from tests.support.secrets import ALNUM, ASSIGNED, TOKENS, Sample, look_alikes, samples

EACH = 10
WORTH_SHOWING = 8  # characters of a secret that nobody would write by accident

DOCUMENTATION = [
    "password policy: at least 12 characters, one digit",
    "AKIAIOSFODNN7EXAMPLE is the AWS docs example key",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "password: stored in 1Password vault infra2",
    "token = os.environ['HUB_TOKEN_2']",
    "token = process.env.HUB_TOKEN_2",
    "api_key: ${API_KEY_2024}",
    "api_key: {{ vault.api_key_v2 }}",
    "password=<your-password-1>",
    "password: xxxxxxxx12",
    "password: ********1a",
    "password = changeme123",
    "secret: placeholder-4f3a9b",
    "token: ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_1234567890abcdefghijklmnopqrstuvwxyz",
    "password: aaaa1111aaaa1111",
    "ghp_" + "ab1" * 12,
    "sk-ant-… and ghp_… are prefixes",
    "the secret is rotated by terraform, see docs/secrets2.md",
    "token: str = parse_token2(line1)",
    "token = tokens[12].value",
    "the token is base64-encoded, at most 4096-bytes",
    "secret: projects/prod-42/secrets/db-main-3",
    "the password is read from /run/secrets/db2.txt",
    "令牌存放在 Vault,不要写入记忆",
    "密码是从 1Password 读取的",
    "密码:见 docs/ops/secrets2.md",
    "postgres://user:password@localhost/db",
    "postgres://app:Xk39dkfjQ2@localhost:5432/db",
    "postgres://user:pass@host/db, postgres://u:p@h",
    "https://username:token123@example.com",
    "redis://:${REDIS_PASSWORD}@cache.internal",
    "http://proxy.internal:8080/a@b",
    "git+ssh://git@github.com:ana/notes.git",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n",
    "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    "JWT header is eyJhbGciOiJIUzI1NiJ9 for HS256",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36",
    "npm_config_registry and npm_lifecycle_event",
    "primary key: id4f3a9b7c21d0",
    "Authorization: Bearer $HUB_TOKEN_FOR_CI_2024",
    "expected_revision=absent",
]


def refusal_of(text: str, *, allow_secret_like: bool = False) -> AmuxError | None:
    try:
        guard.require_clean(text, allow_secret_like=allow_secret_like)
    except AmuxError as refusal:
        return refusal
    return None


def shown(value: object) -> str:
    refusal = value if isinstance(value, AmuxError) else None
    parts = [repr(value), str(value)]
    if refusal is not None:
        parts += [json.dumps(refusal.body()), repr(refusal.args), refusal.hint]
    return " ".join(parts)


def gives_away(sample: Sample, told: str) -> bool:
    secret = sample.secret
    return any(
        secret[at : at + WORTH_SHOWING] in told
        for at in range(len(secret) - WORTH_SHOWING + 1)
        if sum(character in ALNUM for character in secret[at : at + WORTH_SHOWING]) > 6
        and any(character.isdigit() for character in secret[at : at + WORTH_SHOWING])
    )


@pytest.mark.requirement("M77", "bug-26")
def test_at_least_95_in_100_tokens_of_every_format_are_found() -> None:
    found = list(samples(TOKENS, EACH))
    missed = [one for one in found if guard.secret_in(one.text) is None]
    assert len(TOKENS) >= 30
    assert len(found) >= 30 * EACH
    assert len(missed) <= 0.05 * len(found), {one.format for one in missed}
    for name in TOKENS:
        assert sum(one.format == name for one in missed) < EACH / 2, name


@pytest.mark.requirement("M77")
def test_at_least_95_in_100_assigned_secrets_are_found_in_both_languages() -> None:
    found = list(samples(ASSIGNED, EACH))
    missed = [one for one in found if guard.secret_in(one.text) is None]
    assert len(missed) <= 0.05 * len(found), {one.text for one in missed}


@pytest.mark.requirement("M77", "bug-26")
@pytest.mark.parametrize("name", TOKENS)
def test_a_token_is_refused_with_kind_and_line_whoever_vouches_for_it(name: str) -> None:
    for sample in samples({name: TOKENS[name]}, EACH):
        for allow in (False, True):
            refusal = refusal_of(sample.text, allow_secret_like=allow)
            if refusal is None:
                continue  # counted above
            assert isinstance(refusal, SecretDetected)
            assert refusal.details == {"kind": refusal.details["kind"], "line": sample.line}
            assert refusal.details["kind"]


@pytest.mark.requirement("M77", "bug-26")
@pytest.mark.parametrize("name", TOKENS | ASSIGNED)
def test_a_secret_is_shown_nowhere(name: str) -> None:
    for sample in samples({name: (TOKENS | ASSIGNED)[name]}, EACH):
        for said in (guard.secret_in(sample.text), refusal_of(sample.text)):
            assert not gives_away(sample, shown(said))


def test_the_search_for_shown_secrets_sees_one() -> None:
    sample = Sample("x", 1, "ghp_Q7rT9wLm2", "ghp_Q7rT9wLm2")
    assert gives_away(sample, "found ghp_Q7rT9wL")
    assert not gives_away(sample, "found ghp_")


@pytest.mark.requirement("M77")
@pytest.mark.parametrize("name", ASSIGNED)
def test_only_an_assigned_secret_may_be_vouched_for(name: str) -> None:
    for sample in samples({name: ASSIGNED[name]}, EACH):
        refusal = refusal_of(sample.text)
        assert refusal is None or refusal.details["line"] == sample.line
        assert refusal_of(sample.text, allow_secret_like=True) is None


@pytest.mark.requirement("M77")
def test_a_token_after_an_assigned_secret_is_not_vouched_for_with_it() -> None:
    assigned = next(samples(ASSIGNED, 1)).text
    token = next(samples(TOKENS, 1)).text
    assert refusal_of(f"{assigned}\n{token}", allow_secret_like=True) is not None


@pytest.mark.requirement("M77", "bug-26")
@pytest.mark.parametrize("text", DOCUMENTATION)
def test_what_documentation_writes_in_place_of_a_secret_passes(text: str) -> None:
    assert guard.secret_in(f"# Notes\n\n- {text}\n") is None
    assert guard.secret_in(text) is None


@pytest.mark.requirement("M77", "bug-26")
def test_hashes_ids_and_names_pass() -> None:
    refused = [text for text in look_alikes(300) if guard.secret_in(text)]
    assert not refused


@pytest.mark.requirement("M77", "M78")
@pytest.mark.slow
def test_of_a_thousand_ordinary_documents_at_most_2_in_1000_are_refused() -> None:
    found = documents.ordinary()
    assert len(found) >= 1000
    secret = {name for text, name in found.items() if guard.secret_in(text)}
    assert len(secret) <= 0.002 * len(found), secret
    hidden = {name: str(guard.invisible_in(text)) for text, name in found.items()}
    assert {name for name, one in hidden.items() if one != "None"} <= set(), hidden


@pytest.mark.requirement("M77")
@pytest.mark.parametrize(
    "unit",
    [
        "eyJ-", "eyJhbGci.", "password=", "token: a1", "://a:", "://a:b@", "密码是", "xoxb-1",
        "-----BEGIN PRIVATE KEY-----\n ", "-----BEGIN A A A ", "sk-proj-", "M" * 25 + ".", "key ",
        "A: b\n \n", "gh", "bearer ", "AccountKey=A", "[\u200d", "\U0001f3f4\U000e0067", "İ",
    ],
)  # fmt: skip
def test_no_text_makes_a_guard_slow(unit: str) -> None:
    text = (unit * (65536 // len(unit.encode()) + 1))[:65536]
    require_linear(lambda part: refusal_of(part, allow_secret_like=True), text)


def test_a_character_whose_lower_case_is_two_does_not_move_the_line() -> None:
    refusal = refusal_of("İ" * 40 + "\n\npassword = Xk39dkfjQ2\n")
    assert isinstance(refusal, SecretDetected)
    assert refusal.details["line"] == 3


@pytest.mark.slow
def test_there_is_no_other_character_whose_lower_case_is_two() -> None:
    assert [chr(point) for point in range(0x110000) if len(chr(point).lower()) > 1] == ["İ"]


@pytest.mark.requirement("M78")
def test_invisible_text_is_refused_before_a_secret_and_is_never_vouched_for() -> None:
    refusal = refusal_of("a\u202eb password=Xk39dkfjQ2", allow_secret_like=True)
    assert isinstance(refusal, InvalidArgument)
    assert refusal.details["reason"] == "invisible_text"
