"""`subscribePattern` is a Java regular expression, as in programs that used Spark's own connector.

For topic names both dialects agree, except for the forms rewritten here. What only Java supports (\\p{Alpha}, and && in
a character class) is rejected: by Python, or here if Python would only warn and interpret it differently.
"""

import re
import warnings

# Escapes are matched one by one, so that an escaped backslash starts no escape.
_JAVA_FORMS = re.compile(r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|(?P<end>\\z)|(?P<group>\(\?<)(?=[A-Za-z])|\\.", re.DOTALL)


def python_pattern(text: str) -> str:
    """The same pattern for Python. Raises re.error with a reason."""
    pattern = _JAVA_FORMS.sub(_rewritten, text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            re.compile(pattern)
        except FutureWarning as warning:
            raise re.error(f"{warning}, which is not supported") from None
    return pattern


def _rewritten(form: "re.Match[str]") -> str:
    if form["quoted"] is not None:
        return re.escape(form["quoted"])
    if form["end"] is not None:
        return r"\Z"
    return "(?P<" if form["group"] is not None else form[0]
