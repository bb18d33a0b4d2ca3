"""Limits: the most elements of a model, and the size of the files that it reads."""

import os

import numpy as np
import pytest

import dmljax
from dmljax._model.files import read_file
from tests.model import models as m
from tests.samples import tensor


def test_a_limit_is_an_integer():
    assert dmljax.run_model(m.padding_model(), max_elements=np.int64(2**40))
    for wrong in (1e9, True):
        with pytest.raises(
            TypeError, match=r"run_model: max_elements .* be an integer"
        ):
            dmljax.run_model(m.padding_model(), max_elements=wrong)
    # Fault: `limit <= 0` for `limit < 0`.
    assert dmljax.run_model(m.model({}, {}), max_elements=0) == {}
    message = m.refusal("absent.json", max_elements=-1)  # the limit comes first
    assert message.startswith("the limit of elements is -1 (--max-elements, or")


def test_the_sum_of_all_elements():
    """Two resources of 3 and 5 elements, one print and one file: 18 elements."""
    source = m.padding_model()
    assert dmljax.run_model(source, max_elements=18)
    message = "model, command 3 (writeFile): it has 5 elements, and there is room"
    assert m.refusal(source, max_elements=17).startswith(message)
    message = "model, resource 'output': it has 5 elements, and there is room for 4;"
    assert m.refusal(source, max_elements=7).startswith(message)


def test_a_tensor_with_more_elements_than_its_resource():
    values = tensor("INT8", 2**20, strides=(0,))
    desc = dmljax.OneHotDesc(tensor("UINT32", 1), values, tensor("INT8", 2), 0)
    resources = {"i": m.zeros("UINT32", 1), "v": m.zeros("INT8", 4)}
    dispatch = m.dispatch("hot", IndicesTensor="i", ValuesTensor="v", OutputTensor="v")
    source = m.model(resources, {"hot": desc.to_json()}, dispatch)
    message = "tensor 'ValuesTensor' has 1048576 elements, and there is room for 104857"
    assert message in m.refusal(source, max_elements=2**20 - 1)
    dmljax.run_model(source, max_elements=2**20)


def test_the_size_of_a_file_is_checked_before_it_is_read():
    with open("b.bin", "wb") as file:
        file.truncate(2**32)
    source = {"sourcePath": "b.bin"}
    message = f"has {2**32} bytes. A text may have {2**24}; a file of values 8 more"
    assert message in m.refused("input.initialValues", source)


def test_files(folder):
    os.mkfifo("pipe")  # we do not wait for it
    (folder / "long.json").write_bytes(b" " * (2**24 + 1))
    # `dmljax run <(command)` opens a pipe.
    no_file = "it is a folder, a device or a pipe, not a file. On a command line, - r"
    for path, message in {
        "long.json": "it has 16777217 bytes. A text may have 16777216;",
        "none.bin": "it cannot be read: No such file or directory.",
        "a\0b": "it cannot be read: ",  # Python's reason depends on its version
        ".": no_file,
        "pipe": no_file,
        "/dev/zero": no_file,
    }.items():
        assert f"': {message}" in m.refusal(path)


def test_a_file_of_the_most_bytes(folder, monkeypatch):
    """Faults: it is refused, or all of it is read when it has grown since then."""
    (folder / "grown").write_bytes(b"four and more")
    monkeypatch.setattr(os.path, "getsize", lambda path: 4)
    assert read_file(folder / "grown", "it", 4) == b"four"
