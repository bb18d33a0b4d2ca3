"""The operators under test, a file for each operator of the registry."""

import importlib
import importlib.util
import itertools

from dmljax._operators import OPERATORS
from tests.subjects.nonzero_coordinates import KERNEL_SAMPLES

# tests/test_operators.py names the files that are missing.
SUBJECTS = {
    name: importlib.import_module(f"{__name__}.{name}").SUBJECT
    for name in OPERATORS
    if importlib.util.find_spec(f"{__name__}.{name}")
}
# By DirectML's names: there are more operators than functions.
DESCRIBED = {
    name: described
    for subject in SUBJECTS.values()
    for name, described in subject.descriptors.items()
}
# A transformation does not depend on the kernel that runs after it. So we take all
# samples by XLA's forms, and one by kernel.
FORMS = {name: subject.samples for name, subject in SUBJECTS.items()}
KERNELS = {"nonzero_coordinates by kernel": KERNEL_SAMPLES[:1]}
SAMPLES = tuple(itertools.chain(*FORMS.values(), *KERNELS.values()))
# Single operations take long to compile, so there we take a sample of each.
FIRST = tuple(uses[0] for uses in (FORMS | KERNELS).values())
LINEAR = tuple(sample for sample in SAMPLES if sample.linear)
