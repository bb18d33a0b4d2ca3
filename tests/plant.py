r"""Plants faults in a clone of HEAD, one by one, and names those that no test sees.

    python -m tests.plant main tests/test_one_hot.py
    python -m tests.plant faults.txt tests -k one_hot

The first command draws 20 faults in the lines of dmljax/ that HEAD changes since main.
The second reads them from a file, in which `\n` ends a line of code. `$` names other
tests for the faults below it:

    dmljax/_one_hot.py:120: size - 1 ==> size
    $ tests/test_numpy.py -k pad
    dmljax/numpy.py:80: check_axis(axis) ==> pass
"""

import itertools
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

PAIRS = "< <=", "> >=", "== !=", "+ -", "* //", "and or", "0 -1", "True False"
PAIRS = [pair.split() for pair in PAIRS]
WAYS = [
    (f"(?<=[ =(]){re.escape(a)}(?=[ ,)])", b) for x in PAIRS for a, b in (x, x[::-1])
]
WAYS += [
    (r"(?<!def )(?<!class )\b[\w.]+\((?!\))", "(lambda x=None, *_, **__: x)("),
    (r"\.astype\([^()]*\)|\braise (?=\w)|(?<=if )not ", ""),
    (r"\bif ", "if not "),
    (r"(?<![\w.])\d+(?![\w.])", lambda found: str(int(found[0]) + 1)),
]


def output(command):
    return subprocess.check_output(command.split(), text=True)


def program(text):
    return compile(text, "", "exec", optimize=2)


def planted(text, number, old, new):
    lines = text.splitlines(keepends=True)
    before, rest = "".join(lines[: number - 1]), "".join(lines[number - 1 :])
    assert old in rest[: len(lines[number - 1]) + len(old)], (number, old)
    return before + rest.replace(old, new, 1)


def fault_in(path, number):
    """A random fault of a line; None if the line has no code."""
    text = output(f"git show HEAD:{path}")
    old = text.splitlines()[number - 1].strip()
    ways = [] if old.startswith(('"', 'f"')) else random.sample(WAYS, len(WAYS))
    for way, replacement in ways:
        new = re.sub(way, replacement, old, count=1)
        try:
            if program(text) != program(planted(text, number, old, new)):
                return f"{path}:{number}: {old} ==> {new}"
        except SyntaxError:
            pass
    return None


def drawn(revision):
    """20 random faults, each in another line."""
    diff = output(f"git diff -U0 --no-prefix {revision} HEAD -- dmljax")
    places = []
    for path, hunks in re.findall(r"^\+\+\+ (\S+\.py)\n((?:[-+@].*\n)*)", diff, re.M):
        for first, size in re.findall(r"^@@ \S+ \+(\d+),?(\d*)", hunks, re.M):
            places += [(path, int(first) + i) for i in range(int(size or 1))]
    random.shuffle(places)
    return itertools.islice(filter(None, itertools.starmap(fault_in, places)), 20)


def passes(clone, tests):
    command = "timeout", "600", sys.executable, "-m", "pytest", "-qx", "-n0", *tests
    environment = os.environ | {"PYTHONPATH": clone, "PYTHONDONTWRITEBYTECODE": "1"}
    return not subprocess.call(command, cwd=clone, env=environment, stdout=-3)


def main():
    given, *tests = sys.argv[1:]
    listed = os.path.exists(given)
    faults = pathlib.Path(given).read_text().splitlines() if listed else drawn(given)
    with tempfile.TemporaryDirectory() as clone:
        output(f"git clone --quiet . {clone}")
        assert passes(clone, tests), "the tests fail without a fault"
        for fault in faults:
            if fault.startswith("$"):
                tests = shlex.split(fault[1:])
                assert passes(clone, tests), f"{fault[1:]} fails without a fault"
                continue
            path, number, change = fault.replace(r"\n", "\n").split(":", 2)
            file = pathlib.Path(clone, path)
            text = file.read_text()
            old, new = re.split(" ==> ?", change.removeprefix(" "))
            file.write_text(planted(text, int(number), old, new))
            print("SURVIVES" if passes(clone, tests) else "caught  ", fault, flush=True)
            file.write_text(text)


if __name__ == "__main__":
    main()
