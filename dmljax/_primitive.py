"""The JAX primitive of an operator: derivatives, batches, lowering, choice of form.

PADDING, its adjoint and NONZERO_COORDINATES are JAX primitives: each has several
*forms*, ways to compute it. The other operators are plain functions of jax.numpy.

A primitive takes its operands in *normal form*: all have the same rank, and size 1
along dimensions that they share. For example, one value for arrays (8, 3, 4) has shape
(1, 1, 1). Static attributes describe only the last axes. So a further batch dimension
in front changes no attribute, and a single batching rule serves every primitive.

We choose a form when a program is lowered, for the platform that it is lowered for: a
program exported on a CPU for a GPU has the form for a GPU. docs/development/design.md
says why nothing simpler is enough. JAX describes the rules of a primitive
(https://docs.jax.dev/en/latest/jax-primitives.html).
"""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec, get_abstract_mesh

from dmljax._arguments import drop_weak_type
from dmljax._call import check_elements
from dmljax._check import naming
from dmljax._jax import (
    Context,
    is_local,
    lower,
    types_of,
    varying_alike,
    varying_keyword,
    whole_mesh,
)
from dmljax._sharding import Division, explicit_mesh, over_explicit_mesh
from dmljax._types import WIDE, Form, Outputs


@dataclasses.dataclass(frozen=True, eq=False)
class OperatorPrimitive:
    """A JAX primitive with all its rules. Call it with operands in normal form.

    Attributes:
      name: the name in snake_case, for errors, profiles and the primitive.
      definition: a jax.numpy form for every platform,
        `(*operands, **static) -> outputs`.
      outputs: gives the sizes and the data types of the outputs,
        `(*operands, **static) -> types`.
      division: says how explicit mesh axes divide a call,
        `(*operands, **static) -> Division`.
      on_platform: for a platform ("cpu", "cuda", "tpu"), a jax.numpy form that is
        faster there than `definition`.
      auto_sharded: a jax.numpy form for programs whose arrays XLA may divide among
        devices. With this form, XLA need not send whole arrays. None if `definition` is
        such a form.
      kernel: chooses a kernel when a call is lowered, `(platform, context, **static) ->
        form`; it returns None to leave the call to the jax.numpy forms. Here `static`
        may include `implementation`, which forms do not take.
      transpose: the transpose of an operator that is linear in all operands,
        `(cotangents, *operands, **static) -> cotangents`; it returns None for an
        operand that needs none. None for an operator without a derivative.
    """

    name: str
    definition: Form
    outputs: Callable[..., Sequence[jax.ShapeDtypeStruct]]
    division: Callable[..., Division]
    on_platform: Mapping[str, Form] = dataclasses.field(default_factory=dict)
    auto_sharded: Form | None = None
    kernel: Callable[..., Form | None] = lambda *_, **__: None
    transpose: Callable[..., Sequence[Array | None]] | None = None

    def __post_init__(self) -> None:
        """Registers the rules of the primitive with JAX."""
        primitive = self._primitive
        primitive.multiple_results = True
        primitive.def_impl(self._evaluate)
        primitive.def_abstract_eval(self._abstract_eval)
        batching.primitive_batchers[primitive] = self._batch
        if self.transpose is None:
            ad.primitive_jvps[primitive] = self._zero_jvp
        else:
            ad.deflinear2(primitive, self.transpose)
        # The rule without a platform serves all further platforms, such as "rocm".
        for platform in ("", "cpu", "cuda", "tpu"):
            rule = functools.partial(self._lower, platform)
            mlir.register_lowering(primitive, rule, platform=platform or None)

    @functools.cached_property
    def _primitive(self) -> Primitive:
        return Primitive(f"dmljax_{self.name}")

    def __call__(self, *operands: Array, **static: Any) -> Outputs:
        """Computes the outputs for operands in normal form and hashable attributes."""
        # A primitive has no weak types. But the gradient with respect to a weakly typed
        # operand must be weakly typed: the transpose of this conversion makes it so.
        operands = tuple(map(drop_weak_type, operands))
        mesh = explicit_mesh(*operands)
        if mesh is not None:
            return over_explicit_mesh(self, mesh, operands, static)
        # In a shard_map, the operands of a primitive must vary over the same axes.
        return tuple(self._primitive.bind(*varying_alike(*operands), **static))

    def types(self, *operands: Any, **static: Any) -> Sequence[jax.ShapeDtypeStruct]:
        """Returns the sizes and data types of the outputs, and checks the sizes."""
        outputs = self.outputs(*operands, **static)
        for output in outputs:
            with naming(self.name.upper()):
                check_elements(output.shape)
        return outputs

    def _lower(
        self, platform: str, context: Context, *operands: Any, **static: Any
    ) -> Any:
        """Lowers a call for `platform`: the rule that JAX calls."""
        form = self.auto_sharded or self.definition
        if is_local(context):
            # This form is the fastest for arrays that XLA leaves whole.
            form = self.on_platform.get(platform, self.definition)
        form = self.kernel(platform, context, **static) or form
        static.pop("implementation", None)
        # JAX may lower 64-bit elements outside of its x64 mode: after the context of
        # the trace has ended.
        is_wide = any(x.dtype in WIDE for x in types_of(context))
        with jax.enable_x64(True) if is_wide else contextlib.nullcontext():
            return lower(form, context, *operands, **static)

    def _evaluate(self, *operands: Array, **static: Any) -> Outputs:
        """Computes the outputs for concrete arrays.

        If JAX's debug_nans finds a NaN in a program, JAX disables jit, and runs the
        program again, one primitive at a time. A primitive of ours is compiled even
        then. We turn off JAX's check of this inner program, and test the outputs here.
        """
        config: Any = jax.config
        tests = {"nan": jnp.isnan} if config.jax_debug_nans else {}
        tests |= {"inf": jnp.isinf} if config.jax_debug_infs else {}
        with jax.disable_jit(False), jax.debug_nans(False), jax.debug_infs(False):
            outputs: Outputs = self._compiled(tuple(static.items()), *operands)
            for (value, test), output in itertools.product(tests.items(), outputs):
                if test(output).any():
                    raise FloatingPointError(
                        f"invalid value ({value}) encountered in {self.name}"
                    )
        return outputs

    @functools.partial(jax.jit, static_argnums=(0, 1))
    def _compiled(
        self, static: tuple[tuple[str, Any], ...], *operands: Array
    ) -> Outputs:
        """Runs the primitive as a program, cached by operator and attributes.

        A static `self` needs a hash. A dataclass with ``eq=False`` has one.
        """
        return tuple(self._primitive.bind(*operands, **dict(static)))

    def _abstract_eval(
        self, *operands: jax.core.ShapedArray, **static: Any
    ) -> list[jax.core.ShapedArray]:
        """Returns the types of the outputs.

        Explicit mesh axes divide no operand here, for `__call__` sends divided operands
        to `over_explicit_mesh`. So they divide no output. Outputs vary over the same
        manual axes as the operands.
        """
        # The context may have no mesh where the type of an operand has one.
        meshes = [get_abstract_mesh(), *(x.sharding.mesh for x in operands)]
        mesh = next((mesh for mesh in meshes if not mesh.empty), meshes[0])
        keywords = varying_keyword(operands[0])
        keywords["sharding"] = NamedSharding(mesh, PartitionSpec())
        outputs = self.types(*operands, **static)
        return [jax.core.ShapedArray(x.shape, x.dtype, **keywords) for x in outputs]

    def _batch(
        self, operands: Sequence[Array], dims: Sequence[int | None], **static: Any
    ) -> tuple[Outputs, list[int]]:
        """Adds a batch dimension in front, of size 1 for an operand without a batch."""
        batches = [
            operand[None] if dim is None else jnp.moveaxis(operand, dim, 0)
            for operand, dim in zip(operands, dims, strict=True)
        ]
        # JAX hides the mesh axes of the batch from some batching rules
        # (docs/development/lab_notes.md, "The vmap of explicit axes in JAX 0.9.0").
        with whole_mesh():
            outputs = self(*batches, **static)
        return outputs, [0] * len(outputs)

    def _zero_jvp(
        self, primals: Sequence[Array], _: Any, **static: Any
    ) -> tuple[Outputs, Sequence[Any]]:
        """Gives an operator without a derivative tangents of zero."""
        outputs = self(*primals, **static)
        return outputs, [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in outputs]
