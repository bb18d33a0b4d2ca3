"""JSON with comments and trailing commas, as the parser of DxDispatch reads it.

This module reads any JSON. `format` knows the fields of a model.
"""

import contextlib
import json
import re
from typing import Any, NoReturn

from dmljax._check import ModelError, quoted

# Both patterns match strings first, because "//" in a string begins no comment. All
# repetitions are possessive (`*+`), so that a search takes linear time for any text.
STRING = r'"(?:[^"\\]|\\.)*+"?'
COMMENT = re.compile(rf"{STRING}|(//[^\n\r]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)", re.S)
# We leave a comma with nothing before it, as in [,] or [1,,]: json refuses it.
COMMA = re.compile(rf"{STRING}|[\[{{,]\s*+,|(,)(?=\s*+[\]}}])", re.S)


def read_jsonc(content: bytes) -> Any:
    """Reads a text. A ModelError names the line and the column of a mistake."""
    decoder = json.JSONDecoder(object_pairs_hook=unique, parse_constant=_no_constant)
    try:
        text = content.decode("utf-8-sig")  # without a byte order mark
        # Most files are plain JSON, so we look for comments only if this fails.
        with contextlib.suppress(json.JSONDecodeError):
            return decoder.decode(text)
        return decoder.decode(COMMA.sub(_blank, COMMENT.sub(_blank, text)))
    except json.JSONDecodeError as error:
        raise ModelError(
            f"it is not JSON: line {error.lineno}, column {error.colno}: {error.msg}."
        ) from error
    except UnicodeDecodeError as error:
        raise ModelError(
            f"it is not JSON: byte {error.start} is not UTF-8 text."
        ) from error
    except ModelError:  # is a ValueError, too
        raise
    except ValueError as error:  # Python reads no integer of thousands of digits
        raise ModelError("it has an integer of thousands of digits.") from error


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
