"""JSON with comments and trailing commas."""

import json

import pytest

import dmljax
from dmljax._model.jsonc import read_jsonc

COMMENTED = """// A comment /* not a block
{ "a//b": "/* no */ comment \\" // ", /* one
 */ "list": [1, 2, // two
 3,], "object": {"x": 1 , /* , */ },
}  // the end"""


def test_comments_and_trailing_commas():
    expected = {"a//b": '/* no */ comment " // ', "list": [1, 2, 3], "object": {"x": 1}}
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
        ("", "it is not JSON: line 1, column 1: Expecting value."),
        ("[,]", "line 1, column 2"),
        ("[1,,]", "line 1, column 4"),
        ("/* a\n b */ [1 /* , */ 2]", "line 2, column 18"),
        ("[1] /* open", "it is not JSON: line 1, column 5: the comment has no end."),
        ("[1]\n/*/", "line 2, column 1: the comment has no end."),
        ('["open // ]', "line 1, column 2: Unterminated"),
        ("[NaN]", 'NaN is not a number in JSON; write "nan" or "inf".'),
        ("1" * 5000, "it has an integer of thousands of digits."),
    ],
)
def test_wrong_text(text, message):
    assert message in refusal(text.encode())


def test_text_in_another_encoding():
    assert refusal(b'{"\xff') == "it is not JSON: byte 2 is not UTF-8 text."


@pytest.mark.parametrize(
    "text",
    ['"\\' * 200_000, "/*" * 200_000, "[" + "," * 200_000, "[" + ", " * 200_000 + "/"],
)
def test_text_is_read_in_linear_time(text):
    refusal(text.encode())


def test_a_duplicate_among_many_names():
    text = json.dumps({str(n): n for n in range(40_000)})[:-1] + ', "39999": 1}'
    assert "'39999' occurs twice" in refusal(text.encode())
