"""Pictures with bars. `benchmarks.plot` chooses the figures."""

import pathlib
import re
import textwrap
from collections.abc import Iterable, Mapping

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from docs import drawing

# Two of the colours with a light variant for dark pages, and a grey for all pages.
COLOURS = [*list(drawing.LINES)[:2], "#808080"]
CUT = 2.5  # longer bars end at this length
# Pictures fit on a phone: their width and the height of a row in inches, and the
# characters in a line.
WIDTH, ROW, CHARACTERS = 3.6, 0.16, 52


def draw_bars(
    title: str,
    names: Iterable[str],
    groups: Mapping[str, Mapping[str, tuple[float, str]]],
    path: pathlib.Path,
) -> None:
    """Draws groups of bars below their words: a name, a length and a text a bar."""
    colours = dict(zip(names, COLOURS, strict=True))
    longest = top = 0.0  # `top` is in rows: one row for a line of words or a bar
    with mpl.rc_context(drawing.STYLE):
        figure = Figure()
        axes = figure.add_axes((0, 0, 1, 1))
        for words, bars in groups.items():
            lines = _lines(words)
            axes.text(0, top, "\n".join(lines), va="top")
            top += len(lines)
            for name, (length, text) in bars.items():
                cut = " (cut)" * (length > CUT)
                bar = axes.barh(top + 0.5, min(length, CUT), 0.9, color=colours[name])
                axes.bar_label(bar, [f"{text}{cut}"], padding=2)
                longest = max(longest, min(length, CUT))
                top += 1
            top += 0.5
        figure.set_size_inches(WIDTH, ROW * top)
        axes.set(xlim=(0, longest * 1.35), ylim=(top, -0.5))
        axes.set_axis_off()
        drawn = {name for bars in groups.values() for name in bars}
        axes.legend(
            handles=[Patch(color=c, label=n) for n, c in colours.items() if n in drawn],
            title="\n".join(_lines(title)),
            alignment="left",
            bbox_to_anchor=(0, 1),
            borderaxespad=0,
            borderpad=0,
            columnspacing=1,
            frameon=False,
            handlelength=1,
            loc="lower left",
            ncols=len(colours),
        )
        path.write_text(drawing.text_of(figure), encoding="utf-8")


def _lines(text: str) -> list[str]:
    """The lines of a text. A number stays in the line of the word before it."""
    together = re.sub(r" (?=[(\d])", "\N{NO-BREAK SPACE}", text)
    parts = (textwrap.wrap(part, CHARACTERS) for part in together.splitlines())
    return [line for lines in parts for line in lines]
