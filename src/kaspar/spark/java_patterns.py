"""`subscribePattern` is a regular expression of Java, as it stands in programs that used Spark's own connector.

For names of topics the two languages mean the same, but for what is here: Java's forms that Python writes otherwise are
rewritten. What only Java has (\\p{Alpha}, and && in a set) is refused by Python, or here where Python only warns that
it takes it for something else.
"""

import re
import warnings

# Escapes are read one by one, so that a backslash that is itself escaped begins nothing.
_JAVA_FORMS = re.compile(r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|(?P<end>\\z)|(?P<group>\(\?<)(?=[A-Za-z])|\\.", re.DOTALL)


def python_pattern(text: str) -> str:
    """Raises re.error with a reason."""
    pattern = _JAVA_FORMS.sub(_rewritten, text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            re.compile(pattern)
        except FutureWarning as warning:
            raise re.error(f"{warning}, which is not known here") from None
    return pattern


def _rewritten(form: "re.Match[str]") -> str:
    if form["quoted"] is not None:
        return re.escape(form["quoted"])
    if form["end"] is not None:
        return r"\Z"
    return "(?P<" if form["group"] is not None else form[0]
