"""The programs on the pages, and what they print.

The blocks of ``python`` on a page are one program, which a reader can copy into a file.
Doctests and blocks that begin with "# Fragment" are not part of it. Comments below a
``print`` show what it prints.
"""

import pathlib
import re

PAGES = pathlib.Path(__file__).parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^ *print\(.*\n((?:#.*\n)+)", re.MULTILINE)


def program(page: str) -> str:
    """The program on a page, which is given as Markdown."""
    blocks = BLOCK.findall(page)
    return "\n\n".join(x for x in blocks if not x.startswith((">>>", "# Fragment")))


def shown(page: str) -> str:
    """What the program prints, by the comments in it."""
    comments = "".join(SHOWN.findall(program(page)))
    return re.sub(r"^# ?", "", comments, flags=re.MULTILINE)
