"""The command line: runs model files, shows the pages' examples and what is supported.

Whatever is wrong with what it is given, it says so in one line on standard error and
ends with status 2.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import NoReturn, cast

from dmljax import __version__
from dmljax._examples import EXAMPLES, show_example
from dmljax._model import (
    PLATFORMS,
    compile_model,
    find_device,
    operator_class,
    parse_model,
    show_results,
)
from dmljax._model_data import ModelError
from dmljax._operators import DESCRIPTORS
from dmljax._support import support_markdown

BAD_INPUT, WRONG_RESULT, NO_READER = 2, 1, 1


class _UsageError(Exception):
    """The command line itself is wrong."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions, not many lines and an exit."""

    def error(self, message: str) -> NoReturn:
        """Raises what main shows."""
        raise _UsageError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv`; the exit status.

    >>> main(["support", "diagonal_matrix"])  # doctest: +ELLIPSIS
    ### DIAGONAL_MATRIX
    ...
    """
    try:
        arguments = _parser().parse_args(argv)
        command = cast("Callable[[argparse.Namespace], int]", arguments.command)
        status = command(arguments)
        sys.stdout.flush()
        return status
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    except BrokenPipeError:
        # Nobody reads on, as under `| head`. Python would flush once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_READER
    except (_UsageError, ModelError, OSError, UnicodeError) as error:
        print("dmljax:", *str(error).split(), file=sys.stderr)
        return BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dmljax", description="Five DirectML operators for JAX.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run model files of DirectML's DxDispatch")
    run.add_argument("models", nargs="+", metavar="MODEL.json")
    run.add_argument(
        "--device", choices=PLATFORMS, help="where; JAX's default if absent"
    )
    run.add_argument(
        "--timing", action="store_true", help="show how long compiling and running took"
    )
    run.set_defaults(command=_run)

    examples = commands.add_parser("examples", help="run the examples of the pages")
    examples.set_defaults(command=_examples)

    support = commands.add_parser("support", help="show the supported ranks and types")
    support.add_argument("operator", nargs="?", metavar="OPERATOR")
    support.set_defaults(command=_support)
    return parser


def _run(arguments: argparse.Namespace) -> int:
    device = find_device(arguments.device)
    for model in [parse_model(path) for path in arguments.models]:
        start = time.perf_counter()
        run = compile_model(model, device)
        compiled = time.perf_counter()
        results = run()
        end = time.perf_counter()
        show_results(model, results)
        if arguments.timing:
            sys.stdout.flush()
            print(
                f"{model.place}: compile {1000 * (compiled - start):.3g} ms, "
                f"run {1000 * (end - compiled):.3g} ms",
                file=sys.stderr,
            )
    return 0


def _examples(arguments: argparse.Namespace) -> int:
    del arguments
    right = True
    for example in EXAMPLES:
        text, agrees = show_example(example)
        print(f"{text}\n")
        right &= agrees
    return 0 if right else WRONG_RESULT


def _support(arguments: argparse.Namespace) -> int:
    name = arguments.operator
    chosen = DESCRIPTORS.values() if name is None else [operator_class(name)]
    tables = [support_markdown(cls.operator, cls.support) for cls in chosen]
    print("\n\n".join(tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
