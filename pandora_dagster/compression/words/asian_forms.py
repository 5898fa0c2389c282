"""What Chinese and Japanese write for a duty, a prohibition or a limit: scripts that set no blank between words, so without word borders.

Closed forms only, made from no data set; knows nothing of facts.
"""

_DIGIT = r"[\d\uff10-\uff19]"
_FIGURE = rf"(?=[^\s\u3001\u3002\uff0c]{{0,8}}?{_DIGIT})"
"""Looked at, not taken: the figure is compared by itself."""
BINDING = (
    r"不得(?![不已])|不可(?![不思避]|能)|不准|不許|不许|不允许|不允許|不应当|不应该|必须|必須|务必|務必|应当|應當|禁止|严禁|嚴禁|"
    rf"不超过|不超過|不低于|不低於|不少于|不少於|不多于|不多於|不晚于|不晚於|不早于|不早於|至多|至少|(?:最多|最少|最晚|最迟|最遲|最早){_FIGURE}|"
    r"(?:し|て|で)は(?:いけ|なら|なり)(?:ない|ません)|なけれ?ば(?:なら|なり|いけ)(?:ない|ません)|なくては(?:なら|なり|いけ)(?:ない|ません)|"
    r"少なくとも|多くとも|遅くとも"
)
"""What binds whoever says it."""
FORCE = (
    r"不能(?!不)|只能|仅限|僅限|不包括|不包含|不含|除非|除了?[^\n。，,]{1,20}(?:以?外|之外)|不要(?!紧|緊)|请勿|請勿|切勿|"
    rf"ことは?でき(?:ない|ません)|ないでください|を除く|を除き|(?<={_DIGIT}[^\s])(?:以内|以下|未満|まで)|(?<={_DIGIT}[^\s][^\s])(?:以内|以下|未満|まで)"
)
IMPERATIVE = r"不要(?!紧|緊)|请勿|請勿|切勿|ないでください"
PREFERENCE = r"最好(?!的)|宁愿|寧願|更喜欢|できれば|望ましい"
PREFERENCE_HINTS = "最好|宁愿|寧願|更喜欢|できれば|望ましい"
"""Parts of words of which one stands in every preference."""
