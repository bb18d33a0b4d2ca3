"""The kernels that a platform can run, with the toy operator of test_primitive.py."""

import jax
import pytest

from dmljax.pallas import _platforms
from tests.test_primitive import assert_refused, chosen

pytestmark = pytest.mark.usefixtures("any_jax")


@pytest.mark.parametrize("platform", ["rocm", "METAL"])
def test_other_platforms_have_no_kernel(platform):
    assert_refused("no kernel for this platform; .*None or 'xla'", platform=platform)


def test_a_cpu_has_no_kernel():
    assert_refused("no kernel for the platform 'cpu'; .*None or 'xla'", platform="cpu")


def test_without_the_backend_there_is_no_kernel(monkeypatch):
    monkeypatch.setattr(_platforms, "kernels_available", lambda platform: False)
    assert chosen() == "definition"
    assert_refused("jax.experimental.pallas.mosaic_gpu as JAX .*; .*None or 'xla'")


@pytest.mark.parametrize("found", [(7, 5), (8, 0), (8, 9), (9, 0), (10, 0)])
def test_old_gpus_run_a_kernel_only_if_it_is_asked_for(found, monkeypatch):
    monkeypatch.setattr(_platforms, "compute_capability", lambda: found)
    assert chosen() == ("kernel" if found >= (9, 0) else "definition")
    assert chosen(platform="tpu", implementation="pallas") == "kernel"
    least = (8, 0) if jax.__version_info__ >= (0, 11, 2) else (9, 0)
    if found >= least:
        assert chosen(implementation="pallas") == "kernel"
    else:
        assert_refused(rf"compute capability \({least[0]}, 0\) or later")
