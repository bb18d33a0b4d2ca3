"""JSON with comments and trailing commas, as the parser of DxDispatch reads it.

This module reads any JSON. `format` knows the fields of a model.
"""

import contextlib
import json
import re
from typing import Any, NoReturn

from dmljax._check import ModelError, quoted
from dmljax._model.format import reporting

# Comments and trailing commas. A search skips strings, because "//" in a string begins
# no comment. All repetitions are possessive (`*+`), so that it takes linear time.
PATTERNS = (
    r"(//[^\n\r]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)",
    # We leave a comma with nothing before it, as in [,] or [1,,]: json refuses it.
    r"[\[{,]\s*+,|(,)(?=\s*+[\]}])",
)


def read_jsonc(content: bytes) -> Any:
    """Reads a text. A ModelError names the line and the column of a mistake."""
    decoder = json.JSONDecoder(object_pairs_hook=unique, parse_constant=_no_constant)
    # Python reads no integer of thousands of digits.
    with reporting("it cannot be read as JSON", ValueError):
        text = content.decode("utf-8-sig")  # without a byte order mark
        # Most files are plain JSON, so we look for comments only if this fails.
        with contextlib.suppress(json.JSONDecodeError):
            return decoder.decode(text)
        string = r'"(?:[^"\\]|\\.)*+"?'
        for pattern in PATTERNS:
            text = re.sub(f"{string}|{pattern}", _blank, text, flags=re.S)
        return decoder.decode(text)


def _blank(match: re.Match[str]) -> str:
    """Replaces a comment or a comma by spaces. So errors name the right columns."""
    if match[1] is None:
        return match[0]
    if match[1].startswith("/*") and not match[1].endswith("*/", 2):
        raise json.JSONDecodeError(
            "the comment has no end", match.string, match.start()
        )
    return re.sub(r"[^\n\r]", " ", match[1])


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object. No name may occur twice: Python would take the last value."""
    fields = {}
    for name, value in pairs:
        if name in fields:
            raise ModelError(f"the name {quoted(name)} occurs twice in one object.")
        fields[name] = value
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ModelError(
        f'it is not JSON: {name} is not a number in JSON; write "nan" or "inf".'
    )
