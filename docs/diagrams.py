"""Pictures that explain the geometry of a page: boxes and cells with arrows.

`make_pictures` writes each function that is marked ``@diagram`` as a file of its name.
Numbers and messages are results of the package.
"""

import re
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dmljax as dml
from docs import drawing

PIXELS = 96  # in an inch
WIDTH = 690  # of a page, in pixels
DIAGRAMS: dict[str, Callable[[], str]] = {}

Point = tuple[float, float]


def diagram(height: int, width: int = WIDTH) -> Callable[..., Callable[[], str]]:
    """Adds a picture of this size in pixels. It has the name of its function."""

    def add(draw: Callable[[Axes], None]) -> Callable[[], str]:
        def text() -> str:
            with mpl.rc_context(drawing.STYLE):
                figure = Figure(figsize=(width / PIXELS, height / PIXELS))
                axes = figure.add_axes((0, 0, 1, 1))
                axes.set(xlim=(0, width), ylim=(height, 0))
                axes.set_axis_off()
                draw(axes)
                return drawing.text_of(figure)

        DIAGRAMS[draw.__name__] = text
        return text

    return add


def box(
    axes: Axes, x: float, y: float, width: float, height: float, text: str, kind: str
) -> None:
    """A box with text in its middle. Its upper left corner is at x and y."""
    colour = drawing.COLOURS[kind]
    style: dict[str, Any] = {"facecolor": colour, "edgecolor": drawing.EDGE}
    patch = mpl.patches.FancyBboxPatch(
        (x, y),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=6",
        linewidth=0.8,
        **style,
    )
    axes.add_patch(patch)
    place = x + width / 2, y + height / 2
    axes.text(*place, text, ha="center", va="center", color=drawing.NUMBER)


def arrow(
    axes: Axes, begin: Point, end: Point, text: str = "", shift: Point = (8, 0)
) -> None:
    """An arrow, with a word that is shifted from its middle."""
    style = {"arrowstyle": "-|>", "color": "black", "shrinkA": 2, "shrinkB": 2}
    axes.annotate("", end, begin, arrowprops=style)
    if text:
        x, y = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2
        axes.text(x + shift[0], y + shift[1], text, va="center")


@diagram(height=300)
def which_code_runs(axes: Axes) -> None:
    """The questions that decide between XLA's code and a kernel."""
    box(axes, 270, 8, 150, 36, "implementation=", "value")
    default = "is it nonzero_coordinates, on an NVIDIA\nGPU, with as many elements as"
    box(axes, 10, 108, 290, 62, f"{default}\nthe table says?", "value")
    asked = "is there a kernel for this device,\ntype and size, and does XLA not\n"
    box(axes, 440, 108, 240, 62, f"{asked}divide the program?", "value")
    box(axes, 40, 244, 120, 44, "the kernel", "new")
    box(axes, 290, 244, 130, 44, "XLA's code", "second")
    box(axes, 440, 244, 90, 44, "the kernel", "new")
    box(axes, 560, 244, 120, 44, "DescriptorError", "unused")
    arrow(axes, (300, 46), (180, 106), "None", (-44, -6))
    arrow(axes, (350, 46), (355, 242), '"xla"')
    arrow(axes, (390, 46), (530, 106), '"pallas"', (12, -6))
    arrow(axes, (100, 172), (100, 242), "yes")
    arrow(axes, (230, 172), (318, 242), "no", (14, -4))
    arrow(axes, (485, 172), (485, 242), "yes")
    arrow(axes, (620, 172), (620, 242), "no")


PARTS = (
    ("the operator, by DirectML's name", r"[A-Z_]+:"),
    ("what is wrong", r"[^.]+\."),
    ("an argument, and what it has", r"[^)]+[^,]+,"),
    ("what it is compared with", r"[^;]+;"),
    ("the rule", r"[^.]+\."),
    ("what you can write", r"Write [^)]+\)"),
)


@diagram(height=234)
def parts_of_an_error(axes: Axes) -> None:
    """A message of the package, a line for each part."""
    x, row = jnp.zeros((2, 3)), jnp.ones(3)
    try:
        dml.element_wise_if(x > 1, x, row)
    except dml.DescriptorError as error:
        rest = str(error)
    for number, (meaning, pattern) in enumerate(PARTS):
        part = re.match(pattern, rest)
        assert part is not None, rest
        rest = rest[part.end() :].lstrip()
        y = 22 + 38 * number
        box(axes, 8, y - 15, 380, 30, part[0], "value")
        arrow(axes, (430, y), (392, y))
        axes.text(436, y, meaning, va="center")


@diagram(height=222)
def model_file(axes: Axes) -> None:
    """The three parts of a model file, and what names what."""
    for x, title in ((10, "resources"), (260, "dispatchables"), (510, "commands")):
        axes.text(x, 16, title, weight="bold")
    box(axes, 10, 40, 170, 44, "input: 1, 2, 3", "value")
    box(axes, 10, 160, 170, 44, "output: five zeros", "second")
    box(axes, 260, 92, 170, 60, "pad: PADDING,\nmode EDGE,\nby 1 and 1", "new")
    box(axes, 510, 60, 170, 44, "dispatch pad", "off")
    box(axes, 510, 160, 170, 44, "print output", "off")
    arrow(axes, (182, 66), (258, 104), "InputTensor", (-6, -14))
    arrow(axes, (258, 140), (182, 172), "OutputTensor", (0, 14))
    arrow(axes, (508, 86), (432, 112), "runs", (-6, -13))
    arrow(axes, (508, 188), (182, 188), "shows", (-20, -10))
    arrow(axes, (595, 106), (595, 158), "then")
