"""The memory that a model may use."""

import math
import os

import numpy as np
import pytest

import dmljax
from dmljax._model import limits
from dmljax._model.limits import Budget, as_limit, read_file
from tests.model import models as m
from tests.model.test_values import npy


def test_a_budget_counts_all_that_is_taken():
    budget = Budget(2**30)
    budget.take(2**29, "a")
    budget.take(2**28, "b")
    budget.check(2**28, "c")
    with pytest.raises(dmljax.ModelError) as caught:
        budget.check(2**28 + 1, "c")
    assert str(caught.value) == (
        "c needs 256 MiB of memory besides 768 MiB so far; a model may use 1 GiB "
        "(--max-memory, or max_memory in Python)."
    )
    with pytest.raises(dmljax.ModelError, match=r"^d needs 9\.31e\+21 TiB of memory; "):
        Budget(0).check(2**40 * int(9.31e21), "d")


def test_limits():
    for value, limit in (
        (None, None),
        (7, 7),
        (np.int64(2**40), 2**40),
        ("700", 700),
        ("2KiB", 2048),
        ("1.5g", 3 * 2**29),
    ):
        assert as_limit(value) == limit
    for wrong in (math.nan, 1e9, True, np.ones(1, int), np.array(9), b"2K"):
        with pytest.raises(TypeError, match=r"max_memory is .*; it must be an integer"):
            as_limit(wrong)
    for wrong, shown in (("-1G", "'-1G'"), (-1, "-1"), (-(2**9999), "about -2^9999")):
        message = f"max_memory: {shown} is not a size such as 512M or 8G."
        assert m.refusal({}, max_memory=wrong) == message


def test_the_default_limit(monkeypatch, folder):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**20}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    container = folder / "memory.max"
    monkeypatch.setattr(limits, "CONTAINER_LIMITS", (container,))
    assert Budget().limit == 2 * 2**30
    container.write_text("max\n")
    assert Budget().limit == 2 * 2**30
    container.write_text("1073741824\n")
    assert Budget().limit == 2**29
    monkeypatch.delattr(os, "sysconf")
    assert Budget().limit == 4 * 2**30


def test_files(folder, monkeypatch):
    (folder / "full.bin").write_bytes(b"content")
    os.mkfifo("pipe")  # which is not waited for
    assert read_file(folder / "full.bin", Budget(7), "it") == b"content"
    no_file = "it is a folder, a device or a pipe, not a file."
    for path, message in {
        "full.bin": "it needs 14 bytes of memory; a model may use 13 bytes",
        "none.bin": "it cannot be read: No such file or directory.",
        "a\0b": "it is not a path: embedded null byte.",
        ".": "it cannot be read: Is a directory.",
        "pipe": no_file,
        "/dev/zero": no_file,
    }.items():
        with pytest.raises(dmljax.ModelError) as caught:
            read_file(path, Budget(13), "it", factor=2)
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "content",
    [
        npy(np.zeros(2**20, bool)),
        npy(np.zeros((2, 2**18), ">i2", order="F")),
        b"[%s0]//\xf0\x9f\x98\x80" % ((b"[" * 99 + b"]" * 99 + b",") * 2**11),
    ],
)
def test_what_is_read_takes_no_more_memory_than_is_allowed(folder, content):
    (folder / "in.npy").write_bytes(content)
    model = m.holding(m.source("in.npy", None)) if b"NUMPY" in content else "in.npy"
    m.check_memory(model, len(content))
