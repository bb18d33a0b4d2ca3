"""Reading and writing images."""

import math
import os
import sys
import zlib

import numpy as np
import pytest

import dmljax
from dmljax._model.format import reporting
from tests.model import models as m

image = pytest.importorskip("PIL.Image")


def write_image(name="in.png", mode="RGBA"):
    """Writes an image of 5 rows and 7 columns."""
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 4), np.uint8)
    written = image.fromarray(pixels)
    if mode != "RGBA":
        written = written.convert("RGB").convert(mode)
    written.save(name, **{"transparency": 255} if "clear" in name else {})


def pixels_of(opened):
    """The pixels in the order of a resource."""
    return np.concatenate([np.ravel(plane) for plane in opened.split()])


@pytest.mark.parametrize(
    ("name", "mode", "read"),
    [
        ("in.png", "L", "L"),
        ("in.PNG", "RGB", "RGB"),
        ("in.png", "RGBA", "RGBA"),
        ("bits.png", "1", "L"),
        ("palette.png", "P", "RGB"),
        ("clear.png", "L", "RGBA"),
        ("alpha.png", "LA", "RGBA"),
        ("cmyk.jpeg", "CMYK", "RGB"),
    ],
)
@pytest.mark.parametrize(
    "dtype", ["uint8", "float16", "float32", "float64"], indirect=True
)
def test_images_go_through_unchanged(name, mode, read, dtype):
    write_image(name, mode)
    pixels = pixels_of(image.open(name).convert(read))
    command = m.save("r", "OUT.PNG", dimensions=[1, len(read), 5, 7])
    model = m.holding(m.source(name, dtype.name.upper()), command)
    scale = 1 if dtype == np.uint8 else 255
    expected = (pixels / scale).astype(dtype)
    np.testing.assert_array_equal(dmljax.run_model(model)["r"], expected, strict=True)
    np.testing.assert_array_equal(m.values_of(m.source("OUT.PNG")), pixels)


@pytest.mark.parametrize(
    ("mode", "size"), [("L", [1, 1, 5, 7]), ("RGBA", [1, 4, 10, 2])]
)
def test_an_image_is_resampled(mode, size):
    write_image()
    values = m.values_of(m.source("in.png", resampleSize=size))
    converted = image.open("in.png").convert(mode)
    resized = converted.resize(size[:1:-1], image.Resampling.BICUBIC)
    np.testing.assert_array_equal(values, pixels_of(resized))


def test_written_floats_are_clipped_and_rounded():
    floats = ["nan", "-inf", "inf", -0.5, 1.5, 0.5, 0.001, 0.999]
    command = m.save("r", "out.png", dimensions=[2, 4])
    dmljax.run_model(m.holding(m.data("FLOAT32", floats), command))
    pixels = np.asarray(image.open("out.png")).ravel().tolist()
    assert pixels == [0, 0, 255, 0, 255, 128, 0, 255]


@pytest.mark.parametrize("name", ["out.jpg", "out.JPEG"])
def test_a_long_image_is_written_as_jpeg(folder, name):
    command = m.save("r", name, dimensions=[65500, 1])
    dmljax.run_model(m.holding(m.zeros("UINT8", 65500), command))
    assert (folder / name).read_bytes().startswith(b"\xff\xd8")


# Errors


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"initialValuesDataType": "INT32"}, "an image has data type INT32; it must"),
        ({"resampleSize": [3, 5, 7]}, "the field 'resampleSize' is {3,5,7}; it must"),
        ({"resampleSize": [2, 3, 5, 7]}, "the field 'resampleSize' is {2,3,5,7}; it"),
        ({"resampleSize": [1, 2, 5, 7]}, "the field 'resampleSize' is {1,2,5,7}; it"),
        ({"resampleSize": [1, 3, 9**5, 9**5]}, "has 10460353203 elements, and"),
    ],
)
def test_a_wrong_image_resource(more, message):
    write_image()
    assert message in m.refused_resource(m.source("in.png") | more)


def test_the_elements_of_an_image_are_counted_before_it_is_resampled():
    """Fault: no room is required for the pixels of the file, 4 * 5 * 7."""
    write_image()
    model = m.holding(m.source("in.png", resampleSize=[1, 1, 1, 1]))
    assert "'in.png' has 140 elements, and" in m.refusal(model, max_elements=139)
    assert dmljax.run_model(model, max_elements=140)["r"].size == 1


@pytest.mark.parametrize("mode", ["L", "RGB", "LA", "RGBA"])
def test_images_that_can_not_be_read(folder, mode):
    write_image(mode=mode)
    file = (folder / "in.png").read_bytes()
    # The first chunk has a name, sizes, a byte with the bits, and a checksum.
    chunk = file[12:24] + b"\x10" + file[25:29]
    deep = file[:12] + chunk + zlib.crc32(chunk).to_bytes(4) + file[33:]
    for content, reason in (
        (deep, "its pixels have more than 8 bits."),
        (file[:80], ""),
        (b"no image", "cannot identify image file."),
    ):
        (folder / "a.png").write_bytes(content)
        message = m.refused_resource(m.source("a.png"))
        assert f"sourcePath 'a.png' cannot be converted: {reason}" in message
        assert "object at 0x" not in message


def test_an_error_without_a_text():
    with (
        pytest.raises(dmljax.ModelError, match="x: EOFError"),
        reporting("x", EOFError),
    ):
        raise EOFError


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("out.png", [5, 7], "an image has data type INT32; it must be one of"),
        ("out.png", [35], "sizes {35}; for an image, 'dimensions' must be {1,channels"),
        ("out.png", [1, 1, 1, 5, 7], "sizes {1,1,1,5,7}; for an image"),
        ("out.png", [2, 6, 1], "or {height,width}, with 1, 3, 4 channels."),
        ("out.png", [3, 1, 6, 1], "sizes {3,1,6,1}; for an image"),
        ("out.jpg", [4, 3, 1], "or {height,width}, with 1, 3 channels."),
        ("out.jpg", [1, 65_501], "a JPEG image has at most 65500 rows and columns."),
        ("out.jpeg", [65_501, 1], "a JPEG image has at most 65500 rows and columns."),
    ],
)
def test_an_image_that_can_not_be_written(name, sizes, message):
    command = m.save("r", name, dimensions=sizes)
    dtype = "INT32" if "INT32" in message else "UINT8"
    assert message in m.refused_resource(m.zeros(dtype, math.prod(sizes)), command)


def test_images_without_pillow(monkeypatch):
    write_image()
    monkeypatch.setitem(sys.modules, "PIL", None)
    message = "images need Pillow, which is not installed: pip install pillow"
    assert m.refused_resource(m.source("in.png")).endswith(message)
    commands = m.save("r", "first.bin"), m.save("r", "out.png", dimensions=[1, 1])
    assert m.refused_resource(m.data("UINT8", [1]), *commands).endswith(message)
    assert os.listdir() == ["in.png"]  # the model was refused before it ran
