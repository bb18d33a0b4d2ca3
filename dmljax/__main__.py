"""The command line: runs model files, and shows the support tables.

The exit status is 0 for success and 2 for bad input, explained in one line on
standard error. It is 1 if nobody reads the output, or after a fault of dmljax. It is
130 after Ctrl-C. If SIGTERM or SIGHUP comes while a file is written, it is 143 or 129,
and no file with another name is left behind.

Results go to standard output, and all other lines to standard error.

This module has the options, the lines and the exit status. `_model` runs the models.
"""

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from dmljax import __version__
from dmljax._check import ModelError, one_line, shortened
from dmljax._directml.support import support_markdown
from dmljax._model.files import MOST_ELEMENTS
from dmljax._model.format import operator_class
from dmljax._model.output import Targets, print_outputs, show_on, write_outputs
from dmljax._model.parse import parse_model
from dmljax._model.program import execute
from dmljax._model.run import find_device
from dmljax._operators import DESCRIPTORS

DOCUMENTATION = "documentation: help(dmljax) in Python"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are shown in one line, without a usage."""

    def error(self, message: str) -> NoReturn:
        """Raises an error, which `main` shows."""
        raise ModelError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv`, and returns the exit status.

    >>> main(["support", "diagonal_matrix"])  # doctest: +ELLIPSIS
    ## DIAGONAL_MATRIX
    ...
    0
    """
    try:
        arguments = _parser().parse_args(argv)
        arguments.command(arguments)
        # A full disk or a closed pipe has to raise here, not when Python ends. The
        # output is None if the shell has closed it.
        if sys.stdout is not None:
            sys.stdout.flush()
        return 0
    # argparse raises it for --help and --version, and _exit_on_signals for SIGTERM.
    except SystemExit as done:
        return int(done.code or 0)
    except BrokenPipeError:  # such as `dmljax support | head -1`
        _discard(sys.stdout)
        return 1
    except KeyboardInterrupt:
        _write_error("dmljax: interrupted")
        return 130
    except ModelError as error:
        _write_error(one_line(f"dmljax: {error}", 2000))
        return 2
    except OSError as error:
        # This is about standard output, such as a redirection to a full disk. Errors of
        # a model's own files are ModelErrors.
        _discard(sys.stdout)
        _write_error(f"dmljax: the output cannot be written: {error.strerror}")
        return 2


def _write_error(line: str) -> None:
    """Writes a line to standard error. A full or closed stream is no error."""
    if sys.stderr is not None:
        try:
            print(show_on(sys.stderr, line), file=sys.stderr, flush=True)
        except OSError:
            _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Empties the buffer of a stream into the null device.

    Otherwise Python writes the buffer again at its end, and changes the exit status if
    this fails.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dmljax",
        description="DirectML operators for JAX.",
        epilog=f"example: dmljax run model.json; {DOCUMENTATION}",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Any, about: str, example: str) -> Any:
        """Adds a command, and returns the function that adds its arguments."""
        epilog = f"example: dmljax {name} {example}; {DOCUMENTATION}"
        added = commands.add_parser(name, help=about, description=about, epilog=epilog)
        added.set_defaults(command=command)
        return added.add_argument

    about = "run model files of DirectML's DxDispatch"
    argument = add("run", _run, about, "model.json --check")
    argument(
        "models",
        nargs="+",
        metavar="MODEL.json",
        help="model files; - reads one from standard input",
    )
    argument(
        "--device",
        choices=("cpu", "gpu", "tpu"),
        help="where; JAX's default if absent",
    )
    argument(
        "--check", action="store_true", help="check the models and do not run them"
    )
    argument(
        "--output-dir",
        default=".",
        metavar="FOLDER",
        help="the folder of each targetPath; the current directory if absent",
    )
    argument(
        "--no-clobber",
        action="store_true",
        help="refuse to replace a file that is there already",
    )
    argument(
        "--max-elements",
        type=int,
        default=MOST_ELEMENTS,
        metavar="COUNT",
        help="how many elements a model may have; 2^28 if absent",
    )

    argument = add("support", _support, "show the supported ranks and types", "padding")
    argument("operators", nargs="*", metavar="OPERATOR")
    return parser


# Running models


def _run(arguments: argparse.Namespace) -> None:
    """Checks all models, then runs them one after the other."""
    device = find_device(arguments.device)
    if not arguments.output_dir:  # a Path would take it for the current folder
        raise ModelError("--output-dir is empty; write . for the current folder")
    folder = Path(arguments.output_dir)
    targets = Targets(folder, set() if arguments.no_clobber else None)
    models = []
    for name in arguments.models:
        source = sys.stdin if name == "-" else name
        models.append(parse_model(source, targets, arguments.max_elements))
    for name, model in zip(arguments.models, models, strict=True):
        if arguments.check:
            _write_error(f"{model.place}: it can run")
            continue
        versions = execute(model, device)
        with _exit_on_signals():
            written = write_outputs(model.shown, versions, targets)
        if len(models) > 1:
            # The lines about files follow on standard error.
            print(show_on(sys.stdout, f"==> {shortened(name, None)} <=="), flush=True)
        for line in written:
            _write_error(line)
        print_outputs(model.shown, versions)


@contextlib.contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Lets a signal end the process by an exception: no temporary file is left.

    Further signals are ignored until the file is removed.
    """
    changed: dict[signal.Signals, Any] = {}

    def stop(number: int, _: Any) -> None:
        for each in changed:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    # Only the main thread may do this. A signal ignored before stays ignored.
    if threading.current_thread() is threading.main_thread():
        # A shell's `kill`, Ctrl-C, and a terminal that closes. Windows lacks the last.
        hangup = getattr(signal, "SIGHUP", signal.SIGTERM)
        for each in (signal.SIGTERM, signal.SIGINT, hangup):
            handler = signal.getsignal(each)
            if handler in (signal.SIG_DFL, signal.default_int_handler):
                changed[each] = handler
    try:
        for each in changed:
            signal.signal(each, stop)
        yield
    finally:
        for each, handler in changed.items():
            signal.signal(each, handler)


# The other verb


def _support(arguments: argparse.Namespace) -> None:
    classes = map(operator_class, arguments.operators or DESCRIPTORS)
    print(*(support_markdown(c.operator, c.support) for c in classes), sep="\n\n")


if __name__ == "__main__":
    sys.exit(main())
