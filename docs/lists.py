"""Lists on the pages that the registry of operators makes."""

from dmljax._operators import DESCRIPTORS, OPERATORS

NAMES = {
    "{function}": list(OPERATORS),
    "{descriptor}": [cls.__name__ for cls in DESCRIPTORS.values()],
}


def listed(page: str) -> str:
    """Repeats each line with {function} or {descriptor} for all of them."""
    lines = []
    for line in page.splitlines(keepends=True):
        for word, names in NAMES.items():
            if word in line:
                lines += [line.replace(word, name) for name in names]
                break
        else:
            lines.append(line)
    return "".join(lines)
