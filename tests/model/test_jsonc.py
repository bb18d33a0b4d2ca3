"""JSON with comments and trailing commas."""

import pytest

import dmljax
from dmljax._model.jsonc import read_jsonc

COMMENTED = """// A comment /* not a block
{ "a//b": "/* no */ comment \\" // ", /* one
 */ "list": [1, "\\\\", // two
 3,], "object": {"x": 1 , /* , */ },
}  // the end"""


def test_comments_and_trailing_commas():
    expected = {
        "a//b": '/* no */ comment " // ',
        "list": [1, "\\", 3],
        "object": {"x": 1},
    }
    assert read_jsonc(COMMENTED.encode()) == expected
    assert read_jsonc(b"[1, // a line of an old Mac\r 2]") == [1, 2]
    assert read_jsonc(b'\xef\xbb\xbf{"a": "\xc3\xa9",}') == {"a": "\u00e9"}


def refusal(content):
    with pytest.raises(dmljax.ModelError) as caught:
        read_jsonc(content)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "it cannot be read as JSON: Expecting value: line 1 column 1 "),
        (b"[,]", "line 1 column 2"),
        (b"[1,,]", "line 1 column 4"),
        (b"/* a\n b */ [1 /* , */ 2]", "line 2 column 18"),
        (b"[1] /* open", "the comment has no end: line 1 column 5 "),
        (b"[1]\n/*/", "the comment has no end: line 2 column 1 "),
        (b'["open // ]', "Unterminated string starting at: line 1 column 2"),
        (b"[NaN]", 'NaN is not a number in JSON; write "nan" or "inf".'),
        (b"1" * 5000, "integer string conversion: value has 5000 digits."),
        (b'{"a": 1, "b": 2, "a": 3}', "the name 'a' occurs twice in one object."),
        (b'{"\xff', "can't decode byte 0xff in position 2: invalid"),
    ],
)
def test_wrong_text(text, message):
    assert message in refusal(text)


@pytest.mark.parametrize(
    "text",
    ['"\\' * 200_000, "/*" * 200_000, "[" + "," * 200_000, "[" + ", " * 200_000 + "/"],
)
def test_text_is_read_in_linear_time(text):
    refusal(text.encode())
