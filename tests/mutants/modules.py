"""Modules that get faults, tests that try them, and faults that change no result."""

import fnmatch
import functools
import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants.generate import ROOT, Fault, faults, path_of

# Only a GPU runs these. A CPU runs `_lockstep` in their place.
NOT_ON_A_CPU = ("dmljax.pallas.gpu._threads", "dmljax.pallas.gpu._launch")

OF_SELECTS = "results errors support arguments operator derivatives vmap sharding"
OF_PADDING = "padding_forms results export derivatives vmap sharding sharded_programs"
# The modules that compute or check something for every call, as patterns of files, and
# what tests them. A file with a module's name, in the same folder, is not listed:
# tests/test_tensor.py is for dmljax/_tensor.py. The others run after it, the likely
# ones first. "operators" is any test_operators.py below tests/, and a folder stands for
# its files.
COVERED = {
    "_arguments": "results errors",
    "_tensor": "descriptor strides errors public_api",
    "_strides": "descriptor",
    "_overlap": "tensor",
    "_coordinates": "results padding_forms",
    "_primitive": "results derivatives vmap export jax kernels sharding",
    "_select": "results derivatives",
    "_sharding": "sharded_programs padding_primitive",
    "_padding_*": OF_PADDING,
    "_nonzero_coordinates_primitive": "results vmap sharding",
    "_diagonal_matrix1": OF_SELECTS,
    "_one_hot": OF_SELECTS,
    "_element_wise_if": OF_SELECTS,
    "pallas/_padding": "pallas/gpu pallas/tpu",
    "pallas/_platforms": "primitive jax export",
    "pallas/gpu/_[a-z]*": "pallas/gpu kernels races",
    "pallas/tpu/_[a-z]*": "pallas/tpu kernels",
}

# Fewer integers are recognized without a loop.
SLOWER = "** -> *, 2 -> 1, 64 -> 63"
# Faults that change no result, by the reason. A row has the module, the scope, what
# changes ("*" for anything), and a text that the changed lines have.
EQUIVALENT: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "It changes how long a call takes, or from which size on another form runs.": (
        ("_select", "transpose_select", "if False", "needs_cotangent"),
        ("_overlap", "MOST_ROUNDS", "16 -> 17, 16 -> 15", ""),
        ("_overlap", "_reduce", "if False", "sorted(axes)"),
        ("_arguments", "as_integer", f"if False, drop -, {SLOWER}", "value) is int"),
        ("_arguments", "as_sizes", f"if False, {SLOWER}, drop -", "if usual and"),
        ("_strides", "_corner", "*", "2 * math.prod(kept)"),
        ("_strides", "_corner", "if True, > -> >=, 1 -> 0", "if sizes[axis] > 1]"),
        ("_strides", "write", "True -> False", "unique_indices"),
        ("_coordinates", "is_filled", "if True", "not data"),
        (
            "pallas.gpu._nonzero_bits",
            "as_bits",
            "64 -> 65, 64 -> 63",
            "(8, 16, 32, 64)",
        ),
        ("pallas.gpu._nonzero_plan", "PROGRAMS", "512 -> 513, 512 -> 511", ""),
        ("pallas.gpu._nonzero_plan", "*.stored", "1 -> 0", "self.batch == 1"),
        ("pallas.tpu._nonzero_coordinates", "_compact", "1 -> 2", "tpu.SMEM((1,)"),
        ("pallas.tpu._padding", "*.write", "if True", "mode is PaddingMode.WRAP"),
        ("pallas.gpu._nonzero_rows", "store_rows", "- -> +, 1 -> 0", "t.loop((rest"),
        ("pallas.gpu._padding", "_is_inside", "if False", "is_padded"),
        ("pallas.gpu._padding", "PaddingPlan.gap", "2 -> 3", "longest"),
        ("pallas.gpu._nonzero_coordinates", "*", "if True", "rows > written"),
        ("pallas.tpu._launch", "launch_blocks", "*", "moved = sum"),
    ),
    "The value has no part in what follows.": (
        ("_coordinates", "fold", "- -> +, 2 -> 3, 1 -> 2, 1 -> 0", "PaddingMode.WRAP"),
        ("_sharding", "over_explicit_mesh", "0 -> -1", "knows_manual_axes"),
        ("_primitive", "OperatorPrimitive.linear", "*", "= 0"),
        ("_padding_forms", "_pad_constant", "0 -> 1, 0 -> -1", "x.dtype.type(0)"),
        ("pallas.gpu._nonzero_plan", "Program", "True -> False", "frozen=True"),
        ("_arguments", "as_array", "0 -> 1, 0 -> -1", "kind(0)"),
        ("_arguments", "_from_python", "0 -> 1", "np.empty(0"),
        ("pallas.tpu._nonzero_coordinates", "*", "0 -> -1", "where(valid, offset"),
        ("_overlap", "_limit", "1 -> 2, 1 -> 0", "if others else 1"),
        ("_strides", "_offsets", "0 -> 1, 0 -> -1", "sizes[axis] > 1"),
    ),
    "It reads outside of the memory and uses nothing of that. A GPU's tools find it.": (
        ("pallas.gpu._padding", "_load_anywhere", "- -> +", "x.size - per_word"),
        ("pallas.gpu._nonzero_coordinates", "*", "0 -> -1", "has_tiles, p.lane, 0"),
    ),
    "No value comes there that tells the two apart.": (
        ("_padding_primitive", "_transpose", "0 -> -1", "value[0]"),
        ("_primitive", "OperatorPrimitive.*", "0 -> -1", "max(len(primals)"),
        ("pallas.gpu._nonzero_rows", "*", "1 -> 0", "count > 1 and"),
        ("pallas.gpu._padding", "_find_source", "if True", "plan.values > 1"),
        ("pallas.tpu._nonzero_coordinates", "*", "0 -> -1", "first - low[0]"),
        ("pallas._padding", "on_bits.on_all_types", "0 -> -1", "**static)[0]"),
        ("pallas.tpu._padding", "padding", "8 -> 7", "itemsize < 8"),
        ("_padding_forms", "on_cpu", "2 -> 3", "itemsize"),
        ("_arguments", "_is_of_numbers", "16 -> 17, 8 -> 9", "dtype.itemsize"),
        ("_arguments", "cast_float_value", "> -> >=, 0 -> 1, 0 -> -1", "rounded > 0"),
    ),
}


def is_equivalent(fault: Fault) -> bool:
    """Whether `EQUIVALENT` has the fault."""
    return any(matches(row, fault) for rows in EQUIVALENT.values() for row in rows)


def matches(row: tuple[str, str, str, str], fault: Fault) -> bool:
    """Whether a row of `EQUIVALENT` speaks of a fault."""
    module, scope, what, text = row
    same = fnmatch.fnmatchcase(fault.module, f"dmljax.{module}")
    same = same and fnmatch.fnmatchcase(fault.scope, scope) and text in fault.lines
    return same and (what == "*" or fault.what in what.split(", "))


def drawn(names: Sequence[str], sample: int, seed: int) -> Iterator[Fault]:
    """Yields `sample` faults at random, or all, without those that change no code."""
    every = [fault for module in modules(names) for fault in faults(module)]
    random.Random(seed).shuffle(every)
    effective = (fault for fault in every if fault.has_effect())
    return itertools.islice(effective, sample or None)


def modules(names: Sequence[str]) -> list[str]:
    """Returns the modules that get faults, or those with a name, such as "_overlap"."""
    found = []
    for name in names or COVERED:
        for file in _found("dmljax", f"{name}.py"):
            found.append(".".join(file.with_suffix("").parts))
    if not found:
        raise SystemExit(f"no module has the name {' or '.join(names)}")
    return [name for name in found if names or name not in NOT_ON_A_CPU]


@functools.cache
def tests_of(module: str) -> tuple[str, ...]:
    """Returns the files that test a module. The first has its own examples."""
    path = path_of(module).relative_to(ROOT)
    own = f"{path.parent.relative_to('dmljax')}/test_{path.stem.strip('_')}.py"
    files = [path, *_found("tests", own)]
    for pattern, names in COVERED.items():
        if path.match(f"dmljax/{pattern}.py"):
            for name in names.split():
                files += found_tests(name)
    return tuple(dict.fromkeys(map(str, files)))


def found_tests(name: str) -> list[Path]:
    """Returns the files that a name of `COVERED` stands for."""
    return [*_found("tests", f"**/test_{name}.py"), *_found("tests", f"{name}/test_*")]


def _found(folder: str, pattern: str) -> Iterator[Path]:
    """Yields the files of a folder that match, relative to the checkout."""
    for path in sorted((ROOT / folder).glob(pattern)):
        yield path.relative_to(ROOT)
