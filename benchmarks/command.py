"""The shared part of the commands: arguments, circumstances, choosing cases.

`benchmarks.run`, `benchmarks.scaling`, `benchmarks.compare`, `benchmarks.shapes`.
"""

import argparse
import datetime
import pathlib
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax

from benchmarks import ledger
from benchmarks.libraries import Library, versions

_OPTIONS: dict[str, dict[str, Any]] = {
    "--elements": {"type": int, "help": "of a large array on one device"},
    "--rounds": {"type": int, "default": 15},
    "--write": {"action": "store_true", "help": "write the figures into the ledger"},
    "--only": {"nargs": "+", "default": [""], "help": "texts, one of a case's name"},
    "--device": {"help": "its name in the ledger, if it is not JAX's"},
    "--commit": {"help": "of the sources, where git can't tell"},
    "--out": {"type": pathlib.Path, "default": ledger.RESULTS, "help": "the ledger"},
}
COMMON = ("--only", "--commit", "--out")


def parsed(
    argv: Sequence[str] | None, name: str, about: str | None, *options: str
) -> argparse.Namespace:
    """The arguments of a command: its own `options` and the common ones."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for option in (*options, *COMMON):
        parser.add_argument(option, **_OPTIONS[option])
    found = parser.parse_args(argv)
    arguments = sys.argv[1:] if argv is None else argv
    found.command = shlex.join(["python", "-m", name, *arguments])
    return found


def circumstances(
    options: argparse.Namespace, device: str, libraries: Mapping[str, Library]
) -> ledger.Line:
    """The columns of a run in the ledger: figures depend on them and on the case."""
    return {
        "device": vars(options).get("device") or device,
        "date": datetime.date.today().isoformat(),
        "commit": options.commit or _commit(),
        "command": options.command,
        "python": platform.python_version(),
        **versions(libraries),
    }


def device_name(device: jax.Device) -> str:
    """JAX's name of a device, and the architecture of a CPU."""
    if device.platform == "cpu":
        return f"{platform.machine()} CPU"
    return str(device.device_kind)


def named(cases: Iterable[Any], only: Sequence[str]) -> list[Any]:
    """The cases with a text of `only` in their label; ends the program without any."""
    chosen = [case for case in cases if any(one in case.label for one in only)]
    if not chosen:
        words = " or ".join(map(repr, only))
        sys.exit(f"no case has {words} in its text; python -m benchmarks lists them")
    return chosen


def _commit() -> str:
    """The commit of the sources, in git's short form."""
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.check_output(command, text=True).strip()
