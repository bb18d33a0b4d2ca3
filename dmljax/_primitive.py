"""The JAX primitive of an operator: derivatives, batches, lowering, choice of form.

Every operator is one JAX primitive that takes its operands in a *normal form*. All
operands have the same rank. Along the leading, batch dimensions an operand has either
the full size, or size 1 if it is shared. Static attributes speak of trailing axes only.
So one more batch dimension changes no attribute, and one batching rule serves every
operator.

A *form* is one way to compute an operator: in jax.numpy, or by a kernel. The lowering
rule chooses the form when a program is lowered, for the platform that it is lowered
for. So a program that is exported on one machine has the right form on another. The
operators are primitives because jax.custom_vjp has no forward mode, jax.custom_jvp has
no linear_transpose, and neither can choose by platform.

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
    is_partly_manual,
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
    LEAST_BY_DEFAULT,
    LEAST_CAPABILITY,
    NO_MESH,
    kernels_available,
    served,
)

# The form that a caller asks for: XLA's, a kernel, or None for the one that was
# measured to be faster.
Implementation = Literal["xla", "pallas"] | None
# Stands for every platform without a lowering rule of its own, such as "rocm". JAX
# takes a rule for these if it is registered without a platform.
OTHER = ""

# The transpose of an operator takes (primitive, static attributes, cotangents,
# operands). It returns a cotangent for each operand, or None where none is needed.
Transpose = Callable[..., Sequence[jax.Array | None]]


@dataclasses.dataclass(frozen=True, eq=False)
class OperatorPrimitive:
    """One operator in normal form. A call binds the primitive.

    Attributes:
      name: the name in snake_case, which errors, profiles and the primitive show.
      xla: the definition in jax.numpy, `(*operands, **static) -> outputs`. It works on
        every platform.
      partition: says how arrays that are sharded over explicit mesh axes are divided.
      on_platform: for a platform ("cpu", "cuda", "tpu"), a jax.numpy form that is
        faster there than `xla`.
      divisible: a jax.numpy form that XLA divides among devices without sending whole
        arrays; None if `xla` is one. It runs in every program for several devices
        whose shardings XLA chooses.
      linear: the number of trailing operands in which the operator is linear. The ones
        before them are data, such as a condition.
      transpose: the transpose of the operator as a function of its linear operands;
        None for an operator without a derivative.
      kernels: for a platform ("cuda", "tpu"), the operator as a Pallas kernel. Besides
        the arguments of `xla` it takes `interpret=`, which says whether a CPU
        runs it: by Pallas' interpreter, or by `dmljax.pallas._lockstep`.
      sized_by: the number of the operand whose type decides, by its bytes, from how
        many elements on the kernel is the default.
      measured_as: returns the name under which `_default` has the measurements, given
        the platform, the operands and the static attributes; None stands for `name`.
    """

    name: str
    xla: Form
    partition: Partition
    on_platform: Mapping[str, Form] = dataclasses.field(default_factory=dict)
    divisible: Form | None = None
    linear: int = 0
    transpose: Transpose | None = None
    kernels: Mapping[str, Form] = dataclasses.field(default_factory=dict)
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
        for platform in (OTHER, "cpu", "cuda", "tpu"):
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
        """Computes the outputs, as a tuple.

        Args:
          operands: the arrays, in normal form.
          implementation: the form that the caller asked for, or None.
          alone: whether the call is a program of its own, with nothing to fuse with.
          static: the attributes, which are hashable.
        """
        static |= {"implementation": implementation, "alone": alone}
        mesh = explicit_mesh(*operands)
        if mesh is not None:
            # The types of the operands have the mesh, so the definition can't be traced
            # with them: its operations would ask how each of them is sharded.
            whole = [jax.core.ShapedArray(x.shape, x.dtype) for x in operands]
            outputs = self._abstract_eval(*whole, **static)
            taken, made = (tuple(x.shape for x in xs) for xs in (operands, outputs))
            division = Division(self.partition, taken, made, static)
            return over_explicit_mesh(self.name.upper(), mesh, division, operands)
        return tuple(self._primitive.bind(*varying_alike(*operands), **static))

    # THE CHOICE OF A FORM

    def _lowering(self, platform: str) -> Callable[..., Any]:
        """Makes the lowering rule for `platform`."""

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
                return lower(self._kernel(platform))
            if implementation is None and self._prefers_kernel(
                platform, alone, context, static
            ):
                # A kernel may refuse a type or a size. The caller has not asked for
                # one, so XLA's form runs then.
                with contextlib.suppress(NoKernelError):
                    return lower(self._kernel(platform))
            # The form of a platform is faster on one device, but XLA may divide it
            # badly.
            if is_local(context):
                return lower(self.on_platform.get(platform, self.xla))
            lower_form = mlir.lower_fun(
                self.divisible or self.xla, multiple_results=True
            )
            return lower_form(context, *operands, **static)

        return rule

    def _kernel(self, platform: str) -> Form:
        """Returns the kernel for `platform`.

        A CPU runs the kernel for GPUs, interpreted. That is slow, and is there for
        tests. NVIDIA GPUs and TPUs have kernels, and nothing else has.
        """
        interpret = platform == "cpu"
        platform_of_kernel = "cuda" if interpret else platform
        # JAX does not say the name of a platform that has no lowering rule of its own.
        named = f"the platform {platform!r}" if platform else "this platform"
        for holds, problem in (
            (
                platform_of_kernel in self.kernels,
                f"was asked for, and there is no kernel for {named}",
            ),
            (
                interpret or kernels_available(platform),
                f"needs {BACKENDS.get(platform)}, which this JAX, {jax.__version__}, "
                "does not have",
            ),
            (
                interpret or served(platform, LEAST_CAPABILITY),
                f"needs a GPU of compute capability {LEAST_CAPABILITY} or later",
            ),
        ):
            instead = "use implementation=None or 'xla'."
            message = f"implementation='pallas' {problem}; {instead}"
            require(self.name.upper(), holds, message, NoKernelError)
        return functools.partial(self.kernels[platform_of_kernel], interpret=interpret)

    def _require_one_device(self, context: mlir.LoweringRuleContext) -> None:
        """Refuses a kernel in a program that XLA may divide among devices.

        XLA can't divide a kernel. It would gather whole arrays on every device instead.
        """
        reason = "XLA may divide these arrays among devices, which it can't do here"
        advice = (
            "Run the kernel on each device's part: jax.shard_map(f, mesh=mesh, "
            "in_specs=spec, out_specs=spec), where f calls the operator"
        )
        if is_partly_manual(context):
            reason = "XLA may divide these arrays over the axes that are not manual"
            advice = (
                "Leave out axis_names=, so that jax.shard_map makes all axes manual"
            )
        elif not knows_devices(context):
            reason = (
                f"this JAX, {jax.__version__}, does not say for how many devices it "
                f"lowers a program ({UNDOCUMENTED['devices'].path})"
            )
        require(
            self.name.upper(),
            is_local(context),
            f"implementation='pallas' was asked for, and {reason}. {advice}; or use "
            "implementation=None.",
            NoKernelError,
        )

    def _require_sizes(self, context: mlir.LoweringRuleContext) -> None:
        """Refuses a kernel for symbolic sizes: its grid and its loops need numbers."""
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
        """Whether the kernel is the default, because it was measured to be faster."""
        measured = KERNEL_FROM.get(platform, {}).get("alone" if alone else "pipeline")
        # The machine that runs an exported program may have a GPU that the kernel does
        # not serve.
        if not measured or not is_local(context) or is_exported(context):
            return False
        if not (_has_known_sizes(context) and served(platform, LEAST_BY_DEFAULT)):
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
        """Computes the outputs for concrete arrays."""
        # A primitive has no other way to be evaluated than to be compiled, also where
        # the caller has disabled jit.
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
        """Returns the types of the outputs, which are those of the definition."""
        del implementation, alone
        definition = functools.partial(self.xla, **static)
        return list(jax.make_jaxpr(definition)(*operands).out_avals)

    def _batch(
        self, operands: Sequence[jax.Array], dims: Sequence[int | None], **static: Any
    ) -> tuple[Outputs, list[int]]:
        """Adds a batch dimension in front, of size 1 where an operand is shared."""
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
        """Runs the operator again, on the tangents of the operands it is linear in."""
        outputs = self(*primals, **static)
        first = max(len(primals) - self.linear, 0)
        linear = tangents[first:]
        # Integer operands, and constants of the differentiated function, have symbolic
        # zeros. Passing them on keeps the operator from running on arrays of zeros.
        zero = all(isinstance(tangent, ad.Zero) for tangent in linear)
        if self.transpose is None or zero:
            return outputs, [ad.Zero(jax.typeof(o).to_tangent_aval()) for o in outputs]
        tangents = self(*primals[:first], *map(ad.instantiate_zeros, linear), **static)
        return outputs, tangents

    def _taylor(
        self,
        primals: Sequence[jax.Array],
        series: Sequence[Sequence[jax.Array]],
        **static: Any,
    ) -> tuple[Outputs, list[tuple[jax.Array, ...]]]:
        """Computes the outputs, and the terms of their Taylor series.

        The terms of a degree are the operator on the operands' terms of this degree,
        because it is linear in them.
        """
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

    On a CPU the kernel is never the default, so the answer is False there: to find out
    takes 0.7 us, a seventh of the time of a small call.
    """
    return _default_may_be_a_kernel() and stands_alone()


@functools.cache
def _default_may_be_a_kernel() -> bool:
    return jax.default_backend() != "cpu"


def check_implementation(operator: str, implementation: Any) -> None:
    """Requires that the form that a caller asks for is a known one."""
    choices: tuple[Implementation, ...] = (None, "xla", "pallas")
    require_one_of(operator, "implementation", implementation, choices)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _compiled(
    operator: OperatorPrimitive, static: tuple[tuple[str, Any], ...], *operands: Any
) -> Outputs:
    """Runs the primitive as a program, which is cached by operator and attributes."""
    return tuple(operator._primitive.bind(*operands, **dict(static)))


def _lower_locally(
    context: mlir.LoweringRuleContext,
    operands: Sequence[Any],
    static: dict[str, Any],
    form: Form,
) -> Any:
    """Lowers a form or a kernel for arrays that each lie on one device."""
    with use_abstract_mesh(NO_MESH):
        lower = mlir.lower_fun(form, multiple_results=True)
        return lower(on_one_device(context), *operands, **static)


def _bytes_moved(arrays: Sequence[Any]) -> int:
    return sum(array.size * array.dtype.itemsize for array in arrays)


def _has_known_sizes(context: mlir.LoweringRuleContext) -> bool:
    arrays: list[Any] = [*context.avals_in, *context.avals_out]
    return all(isinstance(size, int) for array in arrays for size in array.shape)
