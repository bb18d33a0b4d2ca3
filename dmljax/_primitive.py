"""The JAX primitive of an operator: derivatives, batches, lowering, choice of form.

An operator is one JAX primitive in a normal form: all operands are arrays of the same
rank; along the leading, batch dimensions an operand has either the full size or 1 (then
it is shared); static attributes speak of trailing axes only. So one more batch
dimension changes no attribute, and one batching rule serves every operator.

A *form* is one way to compute an operator: in jax.numpy, or by a kernel. The lowering
rule chooses it when a program is lowered, by platform, so that a program which is
exported on one machine has the right form on another. A primitive is used rather than
jax.custom_jvp or jax.custom_vjp because only a primitive has every transformation.

What single operators compute does not belong here, nor how arguments are checked.
"""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import use_abstract_mesh

from dmljax._check import NoKernelError, require, require_one_of
from dmljax._default import KERNEL_FROM
from dmljax._jax import (
    UNDOCUMENTED,
    is_exported,
    is_local,
    knows_devices,
    on_one_device,
    register_experimental,
    stands_alone,
    varying_alike,
)
from dmljax._sharding import Division, Partition, explicit_mesh, over_explicit_mesh
from dmljax._tensor import Form, Outputs
from dmljax.pallas import (
    BACKENDS,
    LEAST_CAPABILITY,
    NO_MESH,
    kernels_available,
    kernels_lowered,
    served,
)

# XLA's form, a kernel, or None for the fastest.
Implementation = Literal["xla", "pallas"] | None

# (primitive, static attributes, cotangents, operands) -> a cotangent for each operand,
# None for those that need none.
Transpose = Callable[..., Sequence[jax.Array | None]]


@dataclasses.dataclass(frozen=True, eq=False)
class OperatorPrimitive:
    """One operator in normal form; calling it binds the primitive.

    Attributes:
      name: in snake_case; the primitive, profiles and errors show it.
      xla: the definition in jax.numpy, `(*operands, **static) -> outputs`.
      partition: how arrays that are sharded over explicit mesh axes are divided.
      on_platform: by platform ("cpu", "cuda", "tpu"), a jax.numpy form that is faster
        there.
      divisible: a jax.numpy form that XLA divides among devices without sending whole
        arrays; None if `xla` is one. It runs in every program for several devices
        whose shardings XLA chooses.
      linear: how many trailing operands the operator is linear in. The ones before them
        are data, such as a condition.
      transpose: of the operator as a function of its linear operands; None for an
        operator without a derivative.
      kernels: by platform ("cuda", "tpu"), the operator as a Pallas kernel. Besides the
        arguments of `xla` it takes `interpret=`: whether a CPU runs it, which Pallas'
        interpreter does or `dmljax.pallas._lockstep`.
      backend: the backend of the kernel for "cuda", a key of `BACKENDS`.
      sized_by: the operand whose element size decides from how many elements on the
        kernel is the default.
      measured_as: of the platform, operands and static attributes, the name under which
        `_default` has the measurements; None for `name`.
    """

    name: str
    xla: Form
    partition: Partition
    on_platform: Mapping[str, Form] = dataclasses.field(default_factory=dict)
    divisible: Form | None = None
    linear: int = 0
    transpose: Transpose | None = None
    kernels: Mapping[str, Form] = dataclasses.field(default_factory=dict)
    backend: str = "triton"
    sized_by: int = -1
    measured_as: Callable[[str, Sequence[Any], dict[str, Any]], str] | None = None

    def __post_init__(self) -> None:
        """Registers the rules of the primitive with JAX."""
        primitive = self._primitive
        primitive.multiple_results = True
        primitive.def_impl(self._evaluate)
        primitive.def_abstract_eval(self._abstract_eval)
        batching.primitive_batchers[primitive] = self._batch
        ad.primitive_jvps[primitive] = self._jvp
        ad.primitive_transposes[primitive] = self._transpose_rule
        register_experimental(primitive, self._taylor, _bytes_moved)
        for platform in ("", "cpu", "cuda", "rocm", "tpu"):
            mlir.register_lowering(
                primitive, self._lowering(platform), platform=platform or None
            )

    @functools.cached_property
    def _primitive(self) -> Primitive:
        return Primitive(f"dmljax_{self.name}")

    def __call__(
        self,
        *operands: jax.Array,
        implementation: Implementation,
        alone: bool = False,
        **static: Any,
    ) -> Outputs:
        """The outputs, as a tuple.

        Args:
          operands: in normal form.
          implementation: the form that the caller asked for, None for the default.
          alone: whether the call is a program of its own, with nothing to fuse with.
          static: the attributes, which are hashable.
        """
        static |= {"implementation": implementation, "alone": alone}
        mesh = explicit_mesh(*operands)
        if mesh is not None:
            whole = [jax.core.ShapedArray(x.shape, x.dtype) for x in operands]
            outputs = self._abstract_eval(*whole, **static)
            taken, made = (tuple(x.shape for x in xs) for xs in (operands, outputs))
            division = Division(self.partition, taken, made, static)
            return over_explicit_mesh(self.name.upper(), mesh, division, operands)
        return tuple(self._primitive.bind(*varying_alike(*operands), **static))

    # THE CHOICE OF A FORM

    def _lowering(self, platform: str) -> Callable[..., Any]:
        """The rule for `platform`, "" for one without rules of its own."""

        def rule(
            context: mlir.LoweringRuleContext,
            *operands: Any,
            implementation: Implementation,
            alone: bool,
            **static: Any,
        ) -> Any:
            lower = functools.partial(_lower_locally, context, operands, static)
            if implementation == "pallas":
                self._require_one_device(context)
                self._require_sizes(context)
                return lower(self._kernel(platform), self._scope(platform))
            if implementation is None and self._prefers_kernel(
                platform, alone, context, static
            ):
                # A kernel may refuse a type or a size. Then the XLA form runs.
                with contextlib.suppress(NoKernelError):
                    return lower(self._kernel(platform), self._scope(platform))
            if is_local(context):
                form = self.on_platform.get(platform, self.xla)
                return lower(form, use_abstract_mesh(NO_MESH))
            lower_form = mlir.lower_fun(
                self.divisible or self.xla, multiple_results=True
            )
            return lower_form(context, *operands, **static)

        return rule

    def _kernel(self, platform: str) -> Form:
        """The kernel for `platform`. A CPU runs the one for GPUs, interpreted."""
        interpret = platform in ("", "cpu")
        platform_of_kernel = "cuda" if interpret else platform
        operator, backend = self.name.upper(), self._backend(platform)
        require(
            operator,
            platform_of_kernel in self.kernels,
            "implementation='pallas' was asked for, and there is no kernel for "
            f"platform '{platform or 'cpu'}'; use implementation=None or 'xla'.",
            NoKernelError,
        )
        require(
            operator,
            kernels_available(backend) or (interpret and backend == "mosaic"),
            f"implementation='pallas' needs {BACKENDS[backend]}, which this JAX, "
            f"{jax.__version__}, does not have; use implementation=None or 'xla'.",
            NoKernelError,
        )
        require(
            operator,
            interpret or served(backend),
            "implementation='pallas' needs a GPU of compute capability "
            f"{LEAST_CAPABILITY.get(backend)} or later for this operator; use "
            "implementation=None or 'xla'.",
            NoKernelError,
        )
        return functools.partial(self.kernels[platform_of_kernel], interpret=interpret)

    def _backend(self, platform: str) -> str:
        return "tpu" if platform == "tpu" else self.backend

    def _scope(self, platform: str) -> contextlib.AbstractContextManager[None]:
        return kernels_lowered(self._backend(platform))

    def _require_one_device(self, context: mlir.LoweringRuleContext) -> None:
        """Refuses a kernel in a program that XLA may divide: XLA can't divide a kernel.

        It would gather whole arrays on every device instead.
        """
        reason = "XLA may divide these arrays among devices, which it can't do here"
        if not knows_devices(context):
            reason = (
                f"this JAX, {jax.__version__}, does not say for how many devices it "
                f"lowers a program ({UNDOCUMENTED['devices'].path})"
            )
        require(
            self.name.upper(),
            is_local(context),
            f"implementation='pallas' was asked for, and {reason}. Run the kernel on "
            "each device's part: jax.shard_map(f, mesh=mesh, in_specs=spec, "
            "out_specs=spec), where f calls the operator; or use implementation=None.",
            NoKernelError,
        )

    def _require_sizes(self, context: mlir.LoweringRuleContext) -> None:
        """Refuses a kernel for symbolic sizes: its grid and its loops are numbers."""
        require(
            self.name.upper(),
            _has_known_sizes(context),
            "implementation='pallas' was asked for, and the sizes are symbolic; a "
            "kernel needs numbers. Use implementation=None or 'xla'.",
            NoKernelError,
        )

    def _prefers_kernel(
        self,
        platform: str,
        alone: bool,
        context: mlir.LoweringRuleContext,
        static: dict[str, Any],
    ) -> bool:
        """Whether the kernel is the default: it was measured to be faster."""
        measured = KERNEL_FROM.get(platform, {}).get("alone" if alone else "pipeline")
        if not measured or not is_local(context) or is_exported(context):
            return False
        if not _has_known_sizes(context):
            return False
        operands: list[Any] = list(context.avals_in)
        outputs: list[Any] = list(context.avals_out)
        name = self.name
        if self.measured_as:
            name = self.measured_as(platform, operands, static)
        itemsize = operands[self.sized_by].dtype.itemsize
        least = measured.get(name, {}).get(itemsize, math.inf)
        return bool(max(array.size for array in operands + outputs) >= least)

    # THE OTHER RULES

    def _evaluate(self, *operands: jax.Array, **static: Any) -> Outputs:
        """The outputs for concrete arrays, also where jit is disabled."""
        with jax.disable_jit(False):
            outputs: Outputs = _compiled(self, tuple(static.items()), *operands)
        return outputs

    def _abstract_eval(
        self,
        *operands: jax.core.ShapedArray,
        implementation: Any,
        alone: bool,
        **static: Any,
    ) -> list[jax.core.ShapedArray]:
        """The types of the outputs: those of the definition."""
        del implementation, alone
        definition = functools.partial(self.xla, **static)
        return list(jax.make_jaxpr(definition)(*operands).out_avals)

    def _batch(
        self, operands: Sequence[jax.Array], dims: Sequence[int | None], **static: Any
    ) -> tuple[Outputs, list[int]]:
        """One batch dimension more in front; size 1 where an operand is shared."""
        operands = [
            jnp.expand_dims(operand, 0)
            if dim is None
            else jnp.moveaxis(operand, dim, 0)
            for operand, dim in zip(operands, dims, strict=True)
        ]
        outputs = self(*operands, **static)
        return outputs, [0] * len(outputs)

    def _jvp(
        self, primals: Sequence[jax.Array], tangents: Sequence[Any], **static: Any
    ) -> tuple[Outputs, Sequence[Any]]:
        """The operator again, on the tangents of the operands it is linear in."""
        outputs = self(*primals, **static)
        first = max(len(primals) - self.linear, 0)
        linear = tangents[first:]
        if self.transpose is None or all(_is_zero(tangent) for tangent in linear):
            return outputs, [_zero_tangent(out) for out in outputs]
        tangents = self(*primals[:first], *map(ad.instantiate_zeros, linear), **static)
        return outputs, tangents

    def _taylor(
        self,
        primals: Sequence[jax.Array],
        series: Sequence[Sequence[jax.Array]],
        **static: Any,
    ) -> tuple[Outputs, list[tuple[jax.Array, ...]]]:
        """The outputs, and the terms of each: the operator on the terms of a degree."""
        outputs = self(*primals, **static)
        first = max(len(primals) - self.linear, 0)
        by_degree = [
            self(*primals[:first], *terms[first:], **static)
            if self.transpose
            else tuple(map(jnp.zeros_like, outputs))
            for terms in zip(*series, strict=True)
        ]
        return outputs, list(zip(*by_degree, strict=True))

    def _transpose_rule(
        self, cotangents: Sequence[Any], *operands: Any, **static: Any
    ) -> Sequence[jax.Array | None]:
        assert self.transpose is not None, "only linear operators are transposed"
        cotangents = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
        return self.transpose(self, static, cotangents, operands)


def is_alone() -> bool:
    """Whether a call made now is a program of its own, where that changes a default.

    To find out takes 0.7 us of each call, a seventh of the time of a small one. On a
    CPU no default depends on it, so nothing is asked there.
    """
    return _default_may_be_a_kernel() and stands_alone()


@functools.cache
def _default_may_be_a_kernel() -> bool:
    return jax.default_backend() != "cpu"


def check_implementation(operator: str, implementation: Any) -> None:
    """Requires that a caller asks for a form that there is."""
    choices: tuple[Implementation, ...] = (None, "xla", "pallas")
    require_one_of(operator, "implementation", implementation, choices)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _compiled(
    operator: OperatorPrimitive, static: tuple[tuple[str, Any], ...], *operands: Any
) -> Outputs:
    return tuple(operator._primitive.bind(*operands, **dict(static)))


def _lower_locally(
    context: mlir.LoweringRuleContext,
    operands: Sequence[Any],
    static: dict[str, Any],
    form: Form,
    scope: contextlib.AbstractContextManager[Any],
) -> Any:
    """Lowers a form for arrays that each lie on one device, within `scope`."""
    with scope:
        lower = mlir.lower_fun(form, multiple_results=True)
        return lower(on_one_device(context), *operands, **static)


def _bytes_moved(arrays: Sequence[Any]) -> int:
    return sum(array.size * array.dtype.itemsize for array in arrays)


def _has_known_sizes(context: mlir.LoweringRuleContext) -> bool:
    arrays: list[Any] = [*context.avals_in, *context.avals_out]
    return all(isinstance(size, int) for array in arrays for size in array.shape)


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, ad.Zero)


def _zero_tangent(out: jax.Array) -> ad.Zero:
    return ad.Zero(jax.typeof(out).to_tangent_aval())


def needs_cotangent(operand: Any) -> bool:
    """Whether a transpose rule owes this operand a cotangent."""
    return isinstance(operand, ad.UndefinedPrimal)


def unbroadcast(cotangent: jax.Array, operand: ad.UndefinedPrimal) -> jax.Array:
    """The cotangent summed along the dimensions in which `operand` was shared."""
    shape = operand.aval.shape
    shared = [i for i, n in enumerate(shape) if n != cotangent.shape[i]]
    return cotangent.sum(shared, keepdims=True, dtype=cotangent.dtype)


def transpose_select(
    operator: OperatorPrimitive,
    static: dict[str, Any],
    cotangents: Sequence[jax.Array],
    operands: Sequence[Any],
) -> list[jax.Array | None]:
    """The transpose of an operator that selects between its last two operands.

    What was selected gets the cotangent and the other side gets zero, which is the same
    operator again. A shared operand gets the sum; there XLA's form serves always, since
    it fuses the select into the sum and nothing but the cotangent is read.
    """
    (cotangent,) = cotangents
    *data, _, _ = operands
    zero = jnp.zeros((1,) * cotangent.ndim, cotangent.dtype)
    results: list[jax.Array | None] = [None] * len(data)
    for operand, sides in zip(
        operands[-2:], [(cotangent, zero), (zero, cotangent)], strict=True
    ):
        if not needs_cotangent(operand):
            results.append(None)
            continue
        shared = operand.aval.shape != cotangent.shape
        choice = static | {"implementation": "xla"} if shared else static
        (selected,) = operator(*data, *sides, **choice)
        selected = jnp.broadcast_to(selected, cotangent.shape)
        results.append(unbroadcast(selected, operand))
    return results
