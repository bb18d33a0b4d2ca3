"""Draws arrays as SVG, in the visual language that `drawing.py` defines.

A picture is a list of lines. A line is a list of blocks, with signs such as an arrow
between them. A block is an array: a caption, and one cell for each element. A cell has
the text of its element and a kind, and the kind decides its colours:

    value    an element of an input, or a copy of one
    new      a value that the operator adds: padding, or the filled diagonals
    second   an element of a second input, or one that is selected
    off      an element that is not selected
    unused   an element without meaning, such as a row past the count

Every picture lies on a card of its own: it can be read on any page. The colours follow
the reader's light or dark mode.
"""

import dataclasses
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from docs.drawing import COLOURS

WIDTH = 690  # of a page of the documentation, in pixels; no picture is wider
CELL = 34  # height of a cell, and its least width
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
LETTER = 0.56  # width of a letter on average, over the size of the font
CAPTION, HEADING, GAP, MARGIN = 13, 15, 16, 18


@dataclasses.dataclass(frozen=True)
class Colours:
    """The colours of one kind of cell: of its area, its border and its text."""

    area: str
    border: str
    text: str


BORDERS = {
    "value": "#6f9fd8",
    "new": "#d9942b",
    "second": "#3a9d5d",
    "off": "#c4cad1",
    "unused": "#8c959f",
}
# The card itself comes first. Its text is that of captions and signs.
LIGHT = {"card": Colours("#ffffff", "#d0d7de", "#1f2328")} | {
    kind: Colours(area, BORDERS[kind], "#1f2328") for kind, area in COLOURS.items()
}
DARK = {
    "card": Colours("#161b22", "#3d444d", "#e6edf3"),
    "value": Colours("#1d3a60", BORDERS["value"], "#e3efff"),
    "new": Colours("#5b3c0d", BORDERS["new"], "#ffe9c9"),
    "second": Colours("#14502c", BORDERS["second"], "#d8f8e2"),
    "off": Colours("#161b22", "#4a525c", "#c3ccd6"),
    "unused": Colours("#343a42", BORDERS["unused"], "#b9c2cc"),
}
KINDS = tuple(COLOURS)


@dataclasses.dataclass(frozen=True)
class Block:
    """An array as a picture shows it.

    Attributes:
      caption: the line above it.
      texts: the text of each cell, by rows.
      kinds: the kind of each cell, by rows.
    """

    caption: str
    texts: tuple[tuple[str, ...], ...]
    kinds: tuple[tuple[str, ...], ...]

    @property
    def column(self) -> float:
        """The width of a cell. It holds the longest text."""
        longest = max(len(text) for row in self.texts for text in row)
        return max(CELL, 12 + longest * 14 * LETTER)

    @property
    def width(self) -> float:
        """The width of the cells or of the caption, whichever is wider."""
        return max(self.column * len(self.texts[0]), _text_width(self.caption, CAPTION))

    @property
    def height(self) -> float:
        """The height of the cells and the caption."""
        return CELL * len(self.texts) + self.above

    @property
    def above(self) -> float:
        """The height of the caption."""
        return CAPTION + 8 if self.caption else 0


@dataclasses.dataclass(frozen=True)
class Line:
    """Blocks side by side, with signs between them.

    Attributes:
      parts: the blocks and signs from the left.
      heading: the text above the line; none if it is empty.
    """

    parts: tuple[Block | str, ...]
    heading: str = ""


def line(*parts: Block | str, heading: str = "") -> Line:
    """A line of blocks and signs."""
    return Line(parts, heading)


def block(caption: str, values: Any, kinds: Any = "value") -> Block:
    """A block of an array with at most two dimensions.

    `kinds` is the kind of all cells, or an array that has one for each.
    """
    array = np.atleast_2d(np.asarray(values))
    names = np.broadcast_to(np.atleast_2d(np.asarray(kinds)), array.shape)
    unknown = set(names.ravel().tolist()) - set(KINDS)
    if unknown:
        raise ValueError(f"{unknown} are no kinds of cells; there are {KINDS}")
    texts = tuple(tuple(_number(value) for value in row) for row in array)
    return Block(caption, texts, tuple(map(tuple, names.tolist())))


def _number(value: Any) -> str:
    """A number as people write it: 3 for 3.0, and a real minus sign."""
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")


def picture(title: str, lines: Iterable[Line], legend: Mapping[str, str]) -> str:
    """The text of an SVG file.

    Args:
      title: what a screen reader says.
      lines: the lines from the top down.
      legend: what each kind of cell means. Kinds that the picture has not are left out.
    """
    body: list[str] = []
    top: float = MARGIN
    right: float = 0
    for entry in lines:
        if entry.heading:
            baseline = top + HEADING
            body.append(_text(MARGIN, baseline, entry.heading, HEADING, "start", 600))
            top += HEADING + 10
        drawn, width, height = _line(entry.parts, top)
        body += drawn
        top, right = top + height + GAP, max(right, width)
    used = set(re.findall(r'<g class="(\w+)">', "".join(body)))
    missing = used - set(legend)
    if missing:
        raise ValueError(f"the legend of {title!r} does not explain {missing}")
    shown = {kind: legend[kind] for kind in legend if kind in used}
    drawn, width, top = _legend(shown, top)
    body += drawn
    width, height = round(max(right, width) + MARGIN), round(top + MARGIN - 6)
    if width > WIDTH:
        raise ValueError(f"{title!r} is {width} pixels wide; a page has {WIDTH}")
    card = (
        f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" '
        f'height="{height - 1}" rx="8"/>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{html.escape(title)}</title>",
            f"<style>\n{_style()}\n</style>",
            card,
            *body,
            "</svg>\n",
        ]
    )


def _line(parts: Sequence[Block | str], top: float) -> tuple[list[str], float, float]:
    """The elements of a line, where it ends, and its height."""
    blocks = [part for part in parts if isinstance(part, Block)]
    height = max(part.height for part in blocks)
    middle = top + (height + max(part.above for part in blocks)) / 2
    drawn: list[str] = []
    left: float = MARGIN
    for part in parts:
        if isinstance(part, Block):
            drawn += _block(part, left, middle - CELL * len(part.texts) / 2)
            left += part.width + GAP
        else:
            drawn.append(_text(left, middle + 5, part, HEADING, "start"))
            left += _text_width(part, HEADING) + GAP
    return drawn, left - GAP, height


def _block(part: Block, left: float, top: float) -> list[str]:
    """The elements of a block. Its cells begin at `top`."""
    inset = (part.width - part.column * len(part.texts[0])) / 2
    drawn = [_text(left + part.width / 2, top - 8, part.caption, CAPTION)]
    for row, (texts, kinds) in enumerate(zip(part.texts, part.kinds, strict=True)):
        y = top + row * CELL
        for column, (text, kind) in enumerate(zip(texts, kinds, strict=True)):
            x = left + inset + column * part.column
            drawn.append(_cell(x, y, part.column, CELL, kind, text))
    return drawn


def _cell(x: float, y: float, width: float, height: float, kind: str, text: str) -> str:
    inside = _text(x + width / 2, y + height / 2 + 5, text, 14)
    return (
        f'<g class="{kind}"><rect x="{x:g}" y="{y:g}" width="{width:g}" '
        f'height="{height:g}"/>{inside}</g>'
    )


def _legend(legend: Mapping[str, str], top: float) -> tuple[list[str], float, float]:
    """A sample of each kind with its meaning; where they end on both axes."""
    drawn: list[str] = []
    left, right, side = float(MARGIN), float(MARGIN), 16
    for kind, meaning in legend.items():
        width = side + 6 + _text_width(meaning, CAPTION)
        if left > MARGIN and left + width > WIDTH - MARGIN:
            left, top = float(MARGIN), top + side + 8
        drawn.append(_cell(left, top, side, side, kind, ""))
        drawn.append(_text(left + side + 6, top + 13, meaning, CAPTION, "start"))
        right, left = max(right, left + width), left + width + GAP
    return drawn, right, top + side


def _text_width(text: str, size: float) -> float:
    return len(text) * size * LETTER


def _text(
    x: float, y: float, text: str, size: int, anchor: str = "middle", weight: int = 400
) -> str:
    if not text:
        return ""
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"{bold}>'
        f"{html.escape(text)}</text>"
    )


def _style() -> str:
    """The style sheet, for readers with a light page and with a dark one."""
    dark = "\n".join(f"  {rule}" for rule in _rules(DARK))
    lines = [
        f"text {{ font-family: {FONT}; }}",
        *_rules(LIGHT),
        ".unused rect { stroke-dasharray: 3 2; }",
        f"@media (prefers-color-scheme: dark) {{\n{dark}\n}}",
    ]
    return "\n".join(lines)


def _rules(colours: Mapping[str, Colours]) -> list[str]:
    card = colours["card"]
    return [
        f"text {{ fill: {card.text}; }}",
        f".card {{ fill: {card.area}; stroke: {card.border}; }}",
        *(
            f".{kind} rect {{ fill: {c.area}; stroke: {c.border}; }} "
            f".{kind} text {{ fill: {c.text}; }}"
            for kind, c in colours.items()
            if kind != "card"
        ),
    ]
