"""The command line: runs model files, and shows examples and what is supported.

The exit status is 0 for success and 2 for bad input, explained in one line on
standard error. It is 1 if an example disagrees with its page, if nobody reads the
output, or after a fault of dmljax. It is 130 after Ctrl-C. SIGTERM and SIGHUP end the
process as they end others, and leave no file with another name behind.

Results go to standard output. Everything else that is said goes to standard error.
"""

import argparse
import contextlib
import functools
import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

from dmljax import __version__
from dmljax._check import ModelError, escaped, shortened
from dmljax._model.limits import DEFAULT_SHARE, Budget, as_limit
from dmljax._model.output import Targets, show_on
from dmljax._model.parse import operator_class, parse_model, read_stream
from dmljax._model.run import (
    PLATFORMS,
    compile_model,
    find_device,
    print_outputs,
    write_outputs,
)
from dmljax._model.schema import model_schema
from dmljax._operators import DESCRIPTORS
from dmljax._pages.examples import EXAMPLES, Verdict
from dmljax._pages.text import IMPORTS, show_example, summary
from dmljax._support import support_markdown

WRONG_RESULT = 1
NO_READER = 1
BAD_INPUT = 2
INTERRUPTED = 130
STANDARD_INPUT = "-"
# The signals that end the command, and what they do by default. Windows has no SIGHUP.
ENDING: dict[int, Any] = {
    getattr(signal, name): signal.SIG_DFL
    for name in ("SIGTERM", "SIGHUP")
    if hasattr(signal, name)
}
ENDING[signal.SIGINT] = signal.default_int_handler
LONGEST_LINE = 2000  # characters of a message
DOCUMENTATION = "documentation: docs/model_files.md and docs/index.md of the source"


class _UsageError(Exception):
    """The command line itself is wrong."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises its errors, where argparse prints a usage and exits."""

    def error(self, message: str) -> NoReturn:
        """Raises the error that main shows in one line."""
        raise _UsageError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv`, and returns the exit status.

    >>> main(["support", "diagonal_matrix"])  # doctest: +ELLIPSIS
    ## DIAGONAL_MATRIX
    ...
    0
    """
    try:
        arguments = _parser().parse_args(argv)
        command = cast("Callable[[argparse.Namespace], int]", arguments.command)
        status = command(arguments)
        # A full disk or a closed pipe has to raise here, not when Python ends. The
        # output is None if the shell has closed it.
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except SystemExit as done:  # argparse raises it for --help and --version
        return int(done.code or 0)
    except BrokenPipeError:  # such as `dmljax support | head -1`
        _discard(sys.stdout)
        return NO_READER
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except (_UsageError, ModelError) as error:
        _complain(str(error))
        return BAD_INPUT
    except OSError as error:
        # This is about standard output, such as a redirection to a full disk. Errors of
        # a model's own files are ModelErrors.
        _discard(sys.stdout)
        _complain(f"the output cannot be written: {error.strerror}")
        return BAD_INPUT


def _complain(message: str) -> None:
    """Says what is wrong, in one line, whatever it contains."""
    _progress("")
    line = shortened(f"dmljax: {' '.join(message.split())}", LONGEST_LINE)
    _write_error(show_on(sys.stderr, line) + "\n")


def _write_error(text: str) -> None:
    """Writes to standard error. If it is full or closed, the status says enough."""
    if sys.stderr is not None:
        try:
            print(text, end="", file=sys.stderr, flush=True)
        except OSError:
            _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Sends what is left in the buffer of a stream nowhere.

    Python writes it again when it ends, and if that fails, changes the exit status.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dmljax",
        description="Five DirectML operators for JAX.",
        epilog=f"example: dmljax run docs/models/padding_edge.json; {DOCUMENTATION}",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def verb(
        command: Callable[[argparse.Namespace], int], help_: str, example: str
    ) -> argparse.ArgumentParser:
        epilog = f"example: dmljax {example}; {DOCUMENTATION}"
        name = example.split()[0]
        added = commands.add_parser(name, help=help_, description=help_, epilog=epilog)
        added.set_defaults(command=command)
        return added

    about = "run model files of DirectML's DxDispatch"
    option = verb(_run, about, "run model.json --check").add_argument
    flag = functools.partial(option, action="store_true")
    about = "model files; - reads one from standard input"
    option("models", nargs="+", metavar="MODEL.json", help=about)
    option("--device", choices=PLATFORMS, help="where; JAX's default if absent")
    flag("--check", help="check the models and do not run them")
    about = "what each targetPath is relative to; the current directory if absent"
    option("--output-dir", default=".", metavar="FOLDER", help=about)
    flag("--no-clobber", help="refuse to replace a file that is there already")
    option(
        "--max-memory",
        type=_size,
        metavar="SIZE",
        # argparse formats the text by `%`.
        help="what a model may use, such as 512M or 8G; "
        f"{100 * DEFAULT_SHARE:.0f}%% of the machine's memory if absent",
    )
    flag("--timing", help="show how long compiling and running took")
    about = "run the examples of Microsoft's pages"
    option = verb(_examples, about, "examples padding").add_argument
    about = "show whole examples: those of an operator, or one such as padding_edge"
    option("name", nargs="?", metavar="NAME", help=about)
    option("--verbose", action="store_true", help="show all examples whole")
    support = verb(_support, "show the supported ranks and types", "support padding")
    support.add_argument("operator", nargs="?", metavar="OPERATOR")
    about = "print the JSON Schema of model files, for editors"
    verb(_schema, about, "schema > model.schema.json")
    return parser


def _size(text: str) -> int | None:
    try:
        return as_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


# Running models


def _run(arguments: argparse.Namespace) -> int:
    """Checks all models one after the other, then runs them one after the other.

    So a wrong model leaves nothing behind, and no two models are in memory together.
    """
    device = find_device(arguments.device)
    if not arguments.output_dir:  # a Path would take it for the current folder
        raise _UsageError("--output-dir is empty; write . for the current folder")
    targets = Targets(Path(arguments.output_dir), not arguments.no_clobber)
    sources = _sources(arguments.models, Budget(arguments.max_memory))

    @contextlib.contextmanager
    def saying(verb: str, number: int, called: str) -> Iterator[None]:
        """Says what is being done, if standard error is a terminal."""
        _progress(f"{verb} model {number} of {len(sources)}: {called}")
        yield
        _progress("")

    # A single model is checked when it is compiled.
    if arguments.check or len(sources) > 1:
        for number, (called, source) in enumerate(sources, 1):
            with saying("checking", number, called):
                model = parse_model(source, targets, arguments.max_memory)
            if arguments.check:
                _say(f"{model.place}: it can run")
    for number, (called, source) in enumerate([] if arguments.check else sources, 1):
        start = time.perf_counter()
        with saying("compiling", number, called):
            model = parse_model(source, targets, arguments.max_memory)
            run = compile_model(model, device)
        compiled = time.perf_counter()
        with saying("running", number, called):
            results = run()
        end = time.perf_counter()
        with _signals_held() as interruptible:
            written = write_outputs(model, results, interruptible)
        if len(sources) > 1:
            print(f"==> {escaped(called)} <==")
        for line in written:
            _say(line)
        print_outputs(model, results)
        if arguments.timing:
            _say(
                f"{model.place}: compile {1000 * (compiled - start):.3g} ms, "
                f"run {1000 * (end - compiled):.3g} ms"
            )
    return 0


def _sources(names: list[str], budget: Budget) -> list[tuple[str, str | bytes]]:
    """Returns the name of each model for messages, and its path or its text.

    Standard input can be read only once, and a model may be parsed twice.
    """
    if names.count(STANDARD_INPUT) > 1:
        raise _UsageError("standard input holds one model; name - once")
    return [
        ("standard input", read_stream(sys.stdin, budget))
        if name == STANDARD_INPUT
        else (name, name)
        for name in names
    ]


@contextlib.contextmanager
def _signals_held() -> Iterator[Callable[[], contextlib.AbstractContextManager[None]]]:
    """Lets signals end the command only where all files are written, or none.

    Gives a context in which the first signal raises at once. Elsewhere it waits until
    all files have their names, and the other names are removed.
    """
    noted: list[int] = []
    at_once = False

    def end() -> NoReturn:
        interrupted = noted[0] == signal.SIGINT
        raise KeyboardInterrupt if interrupted else SystemExit(128 + noted[0])

    def note(number: int, frame: object) -> None:
        noted.append(number)
        if at_once and len(noted) == 1:
            end()

    @contextlib.contextmanager
    def interruptible() -> Iterator[None]:
        nonlocal at_once
        at_once = True
        try:
            yield
        finally:
            at_once = False

    # Only the main thread may do this, and `nohup` ignores SIGHUP.
    able = threading.current_thread() is threading.main_thread()
    changed = [n for n in ENDING if able and signal.getsignal(n) is ENDING[n]]
    for number in changed:
        signal.signal(number, note)
    try:
        yield interruptible
    finally:
        for number in changed:
            signal.signal(number, ENDING[number])
    if noted:
        end()


def _say(line: str) -> None:
    """Prints a line that is not a result to standard error."""
    if sys.stdout is not None:
        sys.stdout.flush()
    _write_error(f"{escaped(line)}\n")


def _progress(line: str) -> None:
    """Replaces the line of the terminal, and leaves the cursor at its beginning.

    Whatever is printed next takes the place of the line.
    """
    if sys.stderr is not None and sys.stderr.isatty():
        clear = "\r\x1b[K"  # to the beginning of the line; erase to its end
        _write_error(f"{clear}{escaped(line)[:100]}\r")


# The other verbs


def _examples(arguments: argparse.Namespace) -> int:
    find_device(None)  # if there is no device, this says so in one line
    beginning = (arguments.name or "").lower()
    chosen = [example for example in EXAMPLES if example.name.startswith(beginning)]
    if not chosen:
        names = ", ".join(example.name for example in EXAMPLES)
        raise _UsageError(f"no example is named {arguments.name!r}; there are {names}")
    verbose = arguments.verbose or arguments.name is not None
    if verbose:
        print(f"{IMPORTS}\n")
    verdicts = []
    for address, examples in itertools.groupby(chosen, lambda each: each.address):
        print(address)
        for example in examples:
            text, verdict = show_example(example, verbose)
            print(text)
            verdicts.append(verdict)
    print(summary(verdicts))
    return WRONG_RESULT if Verdict.DISAGREES in verdicts else 0


def _support(arguments: argparse.Namespace) -> int:
    name = arguments.operator
    chosen = DESCRIPTORS.values() if name is None else [operator_class(name)]
    print("\n\n".join(support_markdown(cls.operator, cls.support) for cls in chosen))
    return 0


def _schema(arguments: argparse.Namespace) -> int:
    print(json.dumps(model_schema(), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
