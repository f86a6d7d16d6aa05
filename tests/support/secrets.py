"""Made-up secrets of the published formats, and notes that only look as if they held one.

All of it is generated from a seed: nothing was ever valid anywhere, and two runs are the same.
"""

import base64
import json
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

UPPER = string.ascii_uppercase + string.digits
ALNUM = string.ascii_letters + string.digits
BASE64 = ALNUM + "+/"
URL = ALNUM + "-_"
HEX = "0123456789abcdef"
SYMBOLS = ALNUM + "!%^~?"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
PEM_LINES = 5

Make = Callable[[random.Random], str]


@dataclass(frozen=True, slots=True)
class Sample:
    """A document that holds a secret: of which format, in which line, and the secret."""

    format: str
    line: int
    secret: str
    text: str


def _of(shape: str, *parts: tuple[int, str]) -> Make:
    """Make values of a shape: each `{}` is so many characters of an alphabet."""

    def make(chance: random.Random) -> str:
        return shape.format(*("".join(chance.choices(alphabet, k=n)) for n, alphabet in parts))

    return make


def _json_web_token(chance: random.Random) -> str:
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": chance.randbytes(6).hex(), "exp": 1}]
    spelled = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join([*(part.rstrip("=") for part in spelled), _of("{}", (43, URL))(chance)])


def _pem(label: str) -> Make:
    begin, end = f"-----BEGIN {label}-----", f"-----END {label}-----"
    return _of("\n".join([begin, *["{}"] * PEM_LINES, end]), *[(64, BASE64)] * PEM_LINES)


TOKENS: dict[str, Make] = {
    "aws id": _of("AKIA{}", (16, string.ascii_uppercase + "234567")),
    "aws session id": _of("ASIA{}", (16, string.ascii_uppercase + "234567")),
    "aws secret, ini": _of("aws_secret_access_key = {}", (40, BASE64)),
    "aws secret, json": _of('"SecretAccessKey": "{}"', (40, BASE64)),
    "github classic": _of("ghp_{}", (36, ALNUM)),
    "github oauth": _of("gho_{}", (36, ALNUM)),
    "github fine-grained": _of("github_pat_{}_{}", (22, ALNUM), (59, ALNUM)),
    "gitlab": _of("glpat-{}", (20, URL)),
    "google key": _of("AIza{}", (35, URL)),
    "google client secret": _of("GOCSPX-{}", (28, URL)),
    "slack bot": _of("xoxb-{}-{}-{}", (12, string.digits), (12, string.digits), (24, ALNUM)),
    "slack app": _of("xapp-1-A{}-{}-{}", (10, UPPER), (13, string.digits), (64, HEX)),
    "slack webhook": _of(
        "https://hooks.slack.com/services/T{}/B{}/{}", (8, UPPER), (10, UPPER), (24, ALNUM)
    ),
    "stripe secret": _of("sk_live_{}", (24, ALNUM)),
    "stripe restricted": _of("rk_live_{}", (99, ALNUM)),
    "stripe webhook": _of("whsec_{}", (32, ALNUM)),
    "anthropic": _of("sk-ant-api03-{}AA", (93, URL)),
    "openai project": _of("sk-proj-{}T3BlbkFJ{}", (74, URL), (74, URL)),
    "openai old": _of("sk-{}T3BlbkFJ{}", (20, ALNUM), (20, ALNUM)),
    "openrouter": _of("sk-or-v1-{}", (64, HEX)),
    "groq": _of("gsk_{}", (52, ALNUM)),
    "hugging face": _of("hf_{}", (34, string.ascii_letters)),
    "npm": _of("npm_{}", (36, ALNUM)),
    "pypi": _of("pypi-AgEIcHlwaS5vcmc{}", (150, URL)),
    "docker": _of("dckr_pat_{}", (27, URL)),
    "vault": _of("hvs.{}", (90, URL)),
    "age": _of("AGE-SECRET-KEY-1{}", (58, BECH32)),
    "rsa key": _pem("RSA PRIVATE KEY"),
    "openssh key": _pem("OPENSSH PRIVATE KEY"),
    "pkcs8 key": _pem("PRIVATE KEY"),
    "pgp key": _pem("PGP PRIVATE KEY BLOCK"),
    "key in json": _of(
        r'"private_key": "-----BEGIN PRIVATE KEY-----\n{}\n{}\n-----END PRIVATE KEY-----\n"',
        (64, BASE64), (64, BASE64),
    ),
    "json web token": _json_web_token,
    "sendgrid": _of("SG.{}.{}", (22, URL), (43, URL)),
    "twilio": _of("SK{}", (32, HEX)),
    "telegram": _of("{}:AA{}", (9, "123456789"), (33, URL)),
    "discord bot": _of("MT{}.{}.{}", (24, ALNUM), (6, URL), (37, ALNUM)),
    "discord webhook": _of(
        "https://discord.com/api/webhooks/{}/{}", (18, "123456789"), (68, URL)
    ),
    "digitalocean": _of("dop_v1_{}", (64, HEX)),
    "azure storage": _of("AccountName=prod;AccountKey={}==;", (86, BASE64)),
    "tailscale": _of("tskey-auth-{}CNTRL-{}", (12, ALNUM), (32, ALNUM)),
    "databricks": _of("dapi{}", (32, HEX)),
    "grafana": _of("glsa_{}_{}", (32, ALNUM), (8, HEX)),
    "linear": _of("lin_api_{}", (40, ALNUM)),
    "notion": _of("ntn_{}", (46, ALNUM)),
    "shopify": _of("shpat_{}", (32, HEX)),
    "amux": _of("amux_{}_{}_{}", (12, HEX), (43, URL), (8, HEX)),
    "database url": _of("postgres://app:{}@db.internal:5432/prod", (14, ALNUM)),
    "redis url": _of("rediss://:{}@cache.internal:6380/0", (20, ALNUM)),
    "proxy url": _of("https://ana:{}@proxy.corp.internal", (10, SYMBOLS)),
}  # fmt: skip

# Short ones have a digit, as rules for passwords demand.
ASSIGNED: dict[str, Make] = {
    "password, env": _of("DB_PASSWORD={}{}", (11, SYMBOLS), (1, string.digits)),
    "password, yaml": _of('password: "{}{}"', (15, ALNUM), (1, string.digits)),
    "password, prose": _of("the staging password is {}{}", (11, SYMBOLS), (1, string.digits)),
    "password, bold": _of("**Password:** `{}{}`", (11, ALNUM), (1, string.digits)),
    "pass, env": _of("SMTP_PASS={}{}", (13, ALNUM), (1, string.digits)),
    "api key, json": _of('"api_key": "{}"', (32, ALNUM)),
    "api key, words": _of("API key: {}", (32, HEX)),
    "client secret": _of("clientSecret = '{}'", (32, ALNUM)),
    "app secret": _of("app_secret: {}", (32, ALNUM)),
    "token, code": _of('bot_token := "{}"', (28, ALNUM)),
    "bearer": _of("Authorization: Bearer {}", (40, URL)),
    "table": _of("| admin password | {}{} |", (13, ALNUM), (1, string.digits)),
    "密码": _of("数据库密码:{}{}", (11, ALNUM), (1, string.digits)),
    "密码是": _of("测试环境的密码是 {}{},不要外传", (11, ALNUM), (1, string.digits)),
    "密钥": _of("密钥为:{}", (32, ALNUM)),
    "口令": _of("口令={}{}", (13, ALNUM), (1, string.digits)),
    "令牌": _of("访问令牌:`{}`", (40, ALNUM)),
    "密码改为": _of("密码改为{}{}。", (11, ALNUM), (1, string.digits)),
}

# A note around the secret, and the line that the secret begins in.
NOTES = (
    ("# Deploy notes\n\n- Region is eu-west-1.\n- Use it in CI:\n{}\n- Ask Ana first.\n", 5),
    ("## Preferences\n用户偏好中文回复。\n{}\n以后不要再问。\n", 3),
    ("```\nexport X\r\n\r\n{}\n```\n", 4),
    ("{}", 1),
)
INLINE = (("Verified 2026-09-01: works with `{}` (session 4f2a).\n", 1), ("凭据见这里{}\n", 1))


def samples(formats: dict[str, Make], each: int) -> Iterator[Sample]:
    """Make so many documents with a secret for each format, always the same ones."""
    chance = random.Random(20)
    for name, make in formats.items():
        notes = NOTES + INLINE if formats is TOKENS else NOTES
        for number in range(each):
            secret = make(chance)
            note, line = notes[number % len(notes)]
            yield Sample(name, line, secret, note.replace("{}", secret))


def look_alikes(count: int) -> Iterator[str]:
    """Make notes with what looks made by chance, or speaks of secrets, and holds none."""
    chance = random.Random(21)
    makes = [
        _of("- Fixed in commit {} (was {}).\n", (40, HEX), (7, HEX)),
        _of("- Build image sha256:{}\n", (64, HEX)),
        _of("- Session id {}-{}-4{}-a{}-{}\n", (8, HEX), (4, HEX), (3, HEX), (3, HEX), (12, HEX)),
        _of("- revision `{}` conflicts; reread, then merge\n", (64, HEX)),
        _of("- integrity sha512-{}==\n", (86, BASE64)),
        _of("- Trace id 00-{}-{}-01\n", (32, HEX), (16, HEX)),
        _of("- ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} ana@host\n", (43, BASE64)),
        _of("- file id 1{} in Drive\n", (32, URL)),
        _of("- cache key: pip-{}-{}\n", (16, HEX), (32, HEX)),
        _of("- git key {} of the object\n", (40, HEX)),
        _of("![logo](data:image/png;base64,{})\n", (400, BASE64)),
        _of("<https://docs.internal/d/{}/edit?tab=t.{}>\n", (44, URL), (12, HEX)),
    ]
    for number in range(count):
        yield makes[number % len(makes)](chance)
