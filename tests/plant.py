r"""Plants faults in a clone of HEAD, one by one, and names those that no test sees.

    python -m tests.plant main tests/test_one_hot.py
    python -m tests.plant faults.txt tests -k one_hot

The first command draws 20 faults in the lines of dmljax/ that HEAD changes since main.
In a file, `\n` ends a line of old or new code, and `$` names tests for the faults below
it. A file whose first line does so needs no tests on the command line:

    $ tests/test_numpy.py -k pad
    dmljax/numpy.py:80: check_axis(axis) ==> pass
"""

import contextlib
import functools
import itertools
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

PAIRS = "< <=", "> >=", "== !=", "+ -", "* //", "and or", "0 -1", "True False"
PAIRS = [pair.split()[::step] for pair in PAIRS for step in (1, -1)]
WAYS = [(f"(?<=[ =(]){re.escape(old)}(?=[ ,)])", new) for old, new in PAIRS]
WAYS += [(r"\bif ", "if not "), (r"\.astype\([^()]*\)|\braise (?=\w)|\bnot ", "")]
WAYS += [(r"(?<!def )(?<!class )\b[\w.]+\((?!\))", "(lambda x=None, *_, **__: x)(")]
WAYS += [(r"(?<![\w.])\d+(?![\w.])", lambda found: str(int(found[0]) + 1))]

output = functools.partial(subprocess.check_output, text=True, shell=True)
program = functools.partial(compile, filename="", mode="exec", optimize=2)


def planted(text, number, old, new):
    start = re.match(rf"(?:.*\n){{{int(number) - 1}}}.*?(?={re.escape(old)})", text)
    assert start, f"line {number} has no {old}"
    return start[0] + new + text.removeprefix(start[0] + old)


def drawn(revision):
    lines = []
    for path in output("git ls-files 'dmljax/*.py'").split():
        blame = output(f"git blame -s {revision}..HEAD {path}")
        # Numbers and code of the changed lines, but for those that begin with a string.
        found = re.findall(r'^\w.*? (\d+)\) *+(?!f?")(.+)', blame, re.MULTILINE)
        lines += [(path, *pair) for pair in found]
    for path, number, old in random.sample(lines, len(lines)):
        text = output(f"git show HEAD:{path}")
        for way in random.sample(WAYS, len(WAYS)):
            new = re.sub(*way, old, count=1)
            with contextlib.suppress(SyntaxError):
                if program(text) != program(planted(text, number, old, new)):
                    yield f"{path}:{number}: {old} ==> {new}"
                    break


def passes(clone, tests):
    command = f"PYTHONPATH=$PWD timeout 600 {sys.executable} -Bm pytest -x -n0 {tests}"
    code = subprocess.call(command, shell=True, cwd=clone, stdout=subprocess.DEVNULL)
    assert code != 5, f"{tests}: no test is selected"
    return code == 0


if __name__ == "__main__":
    given, *names = sys.argv[1:]
    listed = pathlib.Path(given).is_file() and pathlib.Path(given).read_text()
    faults = listed.splitlines() if listed else itertools.islice(drawn(given), 20)
    assert names or str(listed).startswith("$"), "name the tests to run"
    if names:
        faults = [f"$ {shlex.join(names)}", *faults]
    with tempfile.TemporaryDirectory() as clone:
        output(f"git clone --quiet . {clone}")
        for fault in faults:
            if fault.startswith("$"):
                tests = fault[1:]
                assert passes(clone, tests), f"{tests} fails without a fault"
                continue
            path, number, change = fault.replace(r"\n", "\n").split(":", 2)
            text = (file := pathlib.Path(clone, path)).read_text()
            file.write_text(planted(text, number, *re.split(" ==> ?", change.lstrip())))
            print("SURVIVES" if passes(clone, tests) else "caught  ", fault, flush=True)
            file.write_text(text)
