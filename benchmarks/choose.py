"""Decides by the ledger where a kernel is the default, and writes dmljax/_default.py.

python -m benchmarks.choose
"""

import collections
import pathlib
from collections.abc import Collection, Iterable, Sequence

import jax.numpy as jnp
import numpy as np

from benchmarks import ledger
from benchmarks.ledger import Line

# The ledger that decides for a platform, and the figure: on no TPU was one measured.
LEDGERS = {"cuda": "NVIDIA H200", "tpu": "TPU"}
FIGURES = {"cuda": "ms", "tpu": "estimated_ms"}
TARGET = pathlib.Path(__file__).parent.parent / "dmljax" / "_default.py"
# In which a kernel must win to be the default there.
CONTEXTS = {"alone": ("alone",), "pipeline": ("alone", "pipeline")}
# By operator and by bytes of an element: the least number of elements for a kernel.
Rule = dict[str, dict[int, int]]
# What two runs may differ in: a kernel must be no slower in any case, and on the whole
# faster by more.
NOISE = 0.03
# Elements, the context, and the kernel's time over that of XLA's form.
Measured = tuple[int, str, float]


def rule(lines: Iterable[Line], figure: str = "ms") -> dict[str, Rule]:
    """By context, from how many elements on a kernel is faster than XLA's form.

    It is slower in no forward case of these sizes: in a pipeline, where XLA may fuse
    its form with what stands around it and can't fuse a kernel, neither there nor
    alone.
    Without an entry it is never faster.
    """
    measured = collections.defaultdict(list)
    for (operator, _, direction, context), row in ledger.newest(lines).items():
        if direction == "forward" and "dmljax, pallas" in row:
            kernel, xla = row["dmljax, pallas"], row["dmljax, xla"]
            key = (operator, jnp.dtype(kernel["dtype"]).itemsize)
            ratio = kernel[figure] / xla[figure]
            measured[key].append((kernel["elements"], context, ratio))
    chosen: dict[str, Rule] = {}
    for context, looked_at in CONTEXTS.items():
        by_operator: Rule = collections.defaultdict(dict)
        for (operator, itemsize), figures in sorted(measured.items()):
            least = _least(figures, looked_at)
            if least is not None:
                by_operator[operator][itemsize] = least
        chosen[context] = dict(by_operator)
    return chosen


def _least(figures: Sequence[Measured], contexts: Collection[str]) -> int | None:
    """The least size, measured in all contexts, from which on the kernel wins."""
    figures = [figure for figure in figures if figure[1] in contexts]
    least = None
    for size in sorted({elements for elements, *_ in figures}, reverse=True):
        here = [figure for figure in figures if figure[0] == size]
        ratios = [ratio for *_, ratio in here]
        if max(ratios) > 1 + NOISE:
            break
        faster = np.exp(np.mean(np.log(ratios))) < 1 - NOISE
        if faster and {context for _, context, _ in here} == set(contexts):
            least = size
    return least


def source(rules: dict[str, dict[str, Rule]]) -> str:
    """The module that holds the rules, by platform and context."""
    names = " and ".join(ledger.path(device).name for device in LEDGERS.values())
    lines = [
        '"""From how many elements on a kernel is the default: by the figures.',
        "",
        "By platform, context, operator and bytes of an element; where there is no",
        "entry, XLA's form is the default. The elements are those of the largest input",
        'or output. A call outside of jit and of every transformation is "alone".',
        "",
        "`python -m benchmarks.choose` wrote this, from the ledgers",
        f"benchmarks/results/{names}: on a TPU nothing was measured,",
        "the compiler's estimates decide.",
        '"""',
        "",
        "KERNEL_FROM: dict[str, dict[str, dict[str, dict[int, int]]]] = {",
    ]
    for platform, by_context in sorted(rules.items()):
        lines.append(f'    "{platform}": {{')
        for context, by_operator in sorted(by_context.items()):
            lines.append(f'        "{context}": {{' + ("" if by_operator else "},"))
            for operator, sizes in sorted(by_operator.items()):
                entry = dict(sorted(sizes.items()))
                lines.append(f'            "{operator}": {entry},')
            if by_operator:
                lines.append("        },")
        lines.append("    },")
    return "\n".join([*lines, "}"]) + "\n"


def rules() -> dict[str, dict[str, Rule]]:
    """By platform, what its ledger says."""
    return {
        platform: rule(ledger.read(ledger.path(device)), FIGURES[platform])
        for platform, device in LEDGERS.items()
    }


def main() -> None:
    """Writes the module."""
    TARGET.write_text(source(rules()))


if __name__ == "__main__":
    main()
