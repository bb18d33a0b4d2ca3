"""The operators under test, a file for each operator of the registry."""

import importlib
import importlib.util

from dmljax._operators import OPERATORS

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
# samples by XLA's forms, and only one sample of each operator by kernel.
SAMPLES = tuple(
    sample
    for subject in SUBJECTS.values()
    for sample in (*subject.samples, *subject.kernel_samples[:1])
)
LINEAR = tuple(sample for sample in SAMPLES if sample.linear)
