"""Numbers of texts in scripts without blanks, or with other digits, are facts as any others."""

import pytest

from pandora_dagster.compression import FactKind, Outcome, build_ledger, verify
from pandora_dagster.compression.facts.canonical_values import canonical
from pandora_dagster.compression.facts.fact_statements import statements
from pandora_dagster.compression.facts.value_finder import find_values
from pandora_dagster.compression.words.normalization import key
from pandora_dagster.compression.words.word_classes import sentences


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("价格为1299元，含税。", FactKind.MONEY, "1299元"),
        ("総額3,500円です。", FactKind.MONEY, "3,500円"),
        ("予算は300万円である。", FactKind.MONEY, "300万円"),
        ("가격은 1299원입니다.", FactKind.MONEY, "1299원"),
        ("在2026年5月1日到货。", FactKind.DATE, "2026年5月1日"),
        ("納期は5月10日。", FactKind.DATE, "5月10日"),
        ("会议在14:30开始", FactKind.TIME, "14:30"),
        ("会议在14：30开始", FactKind.TIME, "14：30"),
        ("增长15.6％以上", FactKind.PERCENTAGE, "15.6％"),
        ("订单号A1234已发货", FactKind.IDENTIFIER, "A1234"),
        ("电话号码010-12345678是他的", FactKind.NUMBER, "12345678"),
        ("联系info@example.com谢谢", FactKind.IDENTIFIER, "info@example.com"),
        ("住在「山の家」です", FactKind.QUOTE, "「山の家」"),
        ("السعر ١٢٩٩ دولار فقط", FactKind.MONEY, "١٢٩٩ دولار"),
        ("وصل و500 كتاب", FactKind.NUMBER, "500"),
        ("הגיעו ל500 אנשים", FactKind.NUMBER, "500"),
        ("ราคา1299บาท", FactKind.NUMBER, "1299"),
    ],
)
def test_a_number_between_letters_of_any_script_is_found(text: str, kind: FactKind, value: str) -> None:
    """With its kind, at its place in the text as it was written."""
    found = next(v for v in find_values(text) if v.text == value)
    assert (found.kind, text[found.start : found.end]) == (kind, value)


@pytest.mark.parametrize(
    ("source", "kept", "changed"),
    [
        ("价格为1299元，在2026年5月1日到货。", "1299元，价格含税；2026年5月1日到货", "价格为1399元，在2026年5月1日到货。"),
        ("价格为1299元，在2026年5月1日到货。", "价格为1299 元，2026-05-01到货", "价格为1299元，在2026年5月2日到货。"),
        ("納期は5月10日。予算は300万円である。", "予算300万円、納期5月10日", "納期は10月5日。予算は300万円である。"),
        ("納期は5月10日。予算は300万円である。", "予算は300万円。", "納期は5月10日。予算は300億円である。"),
        ("가격은 1299원입니다. 납기는 2026년 5월 1일입니다.", "가격 1299원, 납기 2026년 5월 1일", "가격은 1399원입니다."),
        ("السعر ١٢٩٩ دولار ويصل بعد ٥ أيام.", "السعر 1299 دولار.", "السعر ١٣٩٩ دولار ويصل بعد ٥ أيام."),
        ('המחיר הוא 1299 ש"ח ומגיע תוך 5 ימים.', 'המחיר 1299 ש"ח', 'המחיר הוא 1399 ש"ח ומגיע תוך 5 ימים.'),
        ("收入增长15％，共１２９９元。", "收入增长15%，共1299元。", "收入增长16％，共１２９９元。"),
    ],
)
def test_a_changed_number_is_found_out(source: str, kept: str, changed: str) -> None:
    """In other words and other digits of the same value it stands; one digit more or less is changed or invented."""
    ledger = build_ledger(source)
    assert ledger.facts
    wrong = (Outcome.MUTATED, Outcome.INVENTED)
    assert not verify(ledger, source, kept).of(*wrong)
    assert verify(ledger, source, kept).of(Outcome.KEPT, Outcome.EQUAL)
    assert verify(ledger, source, changed).of(*wrong)


def test_equal_values_have_one_spelling() -> None:
    """Digits, scales and dates of other scripts are those of ours."""
    assert canonical(FactKind.DATE, "2026年5月1日") == canonical(FactKind.DATE, "May 1, 2026")
    assert canonical(FactKind.MONEY, "300万円") == canonical(FactKind.MONEY, "3,000,000円")
    assert canonical(FactKind.MONEY, "١٢٩٩ دولار") == canonical(FactKind.MONEY, "$1,299.00")
    assert canonical(FactKind.PERCENTAGE, "15％") == canonical(FactKind.PERCENTAGE, "15 %")


def test_words_stand_where_no_blank_is() -> None:
    """A name inside a sentence is found by its letters, and no part of a number is."""
    assert f" {key('北京')} " in f" {key('他在北京开会')} "
    assert f" {key('129')} " not in f" {key('价格为1299元')} "


def test_a_full_width_end_ends_a_sentence() -> None:
    """With no blank behind it."""
    assert sentences("价格为1299元。五月到货！好吗？") == ["价格为1299元。", "五月到货！", "好吗？"]


@pytest.mark.parametrize(
    "sentence",
    [
        "验收没有完成之前不得发货。",
        "运输费用不得超过8,000元。",
        "所有来访者必须佩戴胸牌。",
        "仓库内严禁吸烟和使用明火。",
        "日志至少保留30天以备检查。",
        "优惠只能用于上海门店,不包括苏州。",
        "请把合同发给李娜,不要抄送客户。",
        "ここで写真を撮ってはいけません。",
        "報告書は金曜日までに提出しなければならない。",
        "工場内での撮影は禁止されています。",
        "商品は14日以内に返品してください。",
    ],
)
def test_limits_without_word_borders_bind(sentence: str) -> None:
    """Duties, prohibitions, bounds and exceptions, between any letters."""
    assert [s.kind for s in statements(sentence)] == [FactKind.CONSTRAINT]


@pytest.mark.parametrize(
    "sentence",
    ["会议地点不在一楼,而在三楼。", "这是参加人数最多的一次会议。", "昨日は友人と駅まで歩きました。", "老师对不起,我不得不先走。"],
)
def test_other_sentences_without_word_borders_bind_nobody(sentence: str) -> None:
    """A denial alone, a superlative, a way."""
    assert not list(statements(sentence))
