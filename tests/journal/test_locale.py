import pytest

from amux.errors import InvalidArgument
from amux.journal.text import locale


@pytest.mark.requirement("T43")
@pytest.mark.parametrize(
    ("given", "spelled"),
    [
        ("zh", "zh-CN"), ("ZH", "zh-CN"), ("zh-hant-tw", "zh-Hant-TW"), ("PT-br", "pt-BR"),
        ("es-419", "es-419"), ("de-CH-1901x", "de-CH-1901x"), ("fil", "fil"),
        ("sl-ROZAJ-biske", "sl-rozaj-biske"),
    ],
)  # fmt: skip
def test_a_locale_has_one_spelling(given: str, spelled: str) -> None:
    assert locale.parse(given) == spelled
    assert locale.parse(spelled) == spelled


@pytest.mark.requirement("T43")
@pytest.mark.parametrize(
    "given",
    ["zz_??", "", "z", "english", "zh_CN", "zh-", "en-US-", "en-U", "ｚｈ", "en\n",
     "en-" + "a" * 40, "de-Latn-Latn", "en-US-abc"],
)  # fmt: skip
def test_what_is_no_locale_is_refused(given: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        locale.parse(given)
    assert refused.value.details["reason"] == "TASK_LOCALE_INVALID"


@pytest.mark.requirement("T43")
def test_an_argument_wins_over_the_session_and_both_over_nothing() -> None:
    assert locale.choose("en", "zh-CN").fields() == {
        "locale": "en", "localeSource": "argument", "textLocale": "en",
    }  # fmt: skip
    assert locale.choose(None, "zh-TW").fields() == {
        "locale": "zh-TW", "localeSource": "session", "textLocale": "zh-CN",
    }  # fmt: skip
    assert locale.choose(None, None).fields() == {
        "locale": None, "localeSource": "absent", "textLocale": "en",
    }  # fmt: skip
    assert locale.choose("fr", None).text_locale == "en"
