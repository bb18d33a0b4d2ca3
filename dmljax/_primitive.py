"""The JAX primitive of an operator: derivatives, batches, lowering, choice of form.

PADDING, its adjoint and NONZERO_COORDINATES are JAX primitives: each has several
*forms*, ways to compute it. The other operators are plain functions of jax.numpy. In
the *normal form*, all operands have one rank, with size 1 where elements share a value:
one more batch dimension changes no attribute, and one batching rule serves every
primitive (docs/development/design.md has more).

A form is chosen when a program is lowered, for the platform that it is lowered for. A
program that is exported on one machine has the right form on another. We chose
primitives because jax.custom_vjp has no forward mode, jax.custom_jvp takes no rule for
the transpose, and the body of neither knows for how many devices it is lowered. JAX
describes the rules that a primitive needs
(https://docs.jax.dev/en/latest/jax-primitives.html).
"""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import get_abstract_mesh

from dmljax._arguments import drop_weak_type
from dmljax._call import check_elements
from dmljax._check import DescriptorError, NoKernelError, as_python
from dmljax._jax import (
    Context,
    is_local,
    lower,
    types_of,
    varying_alike,
    whole_mesh,
)
from dmljax._sharding import explicit_mesh, over_explicit_mesh
from dmljax._types import Form, Outputs
from dmljax.pallas._platforms import may_be_default, require_kernel

# The form that a caller asks for. None stands for the default.
Implementation = Literal["xla", "pallas"] | None


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A form that is written in Pallas, and when it is the default.

    Attributes:
      form: takes the arguments of `OperatorPrimitive.xla`. It imports the kernel's
        module when it is called.
      default_from: the kernel is the default if an operand or an output has at least
        this number of elements. None: it runs only if the caller asks for it, because
        it is not faster in most programs, or because we have not run it on its
        hardware.
    """

    form: Form
    default_from: int | None = None

    def is_default(self, platform: str, context: Context) -> bool:
        """Whether the kernel runs for these arrays if the caller asks for none."""
        if self.default_from is None or not may_be_default(platform, context):
            return False
        size = max(array.size for array in types_of(context))
        return bool(size >= self.default_from)


@dataclasses.dataclass(frozen=True, eq=False)
class OperatorPrimitive:
    """One operator in normal form. A call binds the primitive.

    To add an operator, write `xla`. If the operator has a derivative, put the operands
    that it is linear in last, say in `linear` how many they are, and write its
    `transpose`. Everything else has a default that works.

    Attributes:
      name: the name in snake_case that errors, profiles and the primitive show.
      xla: the definition in jax.numpy, `(*operands, **static) -> outputs`. It works on
        every platform.
      independent: the dimensions along which the operator is independent, as
        `_sharding` says, `(*operands, **static) -> dimensions`.
      aligned: whether an output has all dimensions of the operands, in their order.
      gathers: whether a call gathers arrays over explicit mesh axes along all other
        dimensions, `(**static) -> bool`, because XLA divides them more slowly.
      sizes: the sizes of the outputs, `(*operands, **static) -> sizes of each`. None:
        the definition is traced to learn them, and a trace takes twice as long.
      dtype: the type of the outputs. None: that of the last operand.
      on_platform: for a platform ("cpu", "cuda", "tpu"), a jax.numpy form that is
        faster there than `xla`.
      divisible: a jax.numpy form that XLA divides among devices without sending whole
        arrays; None if `xla` is one. It runs in every program for several devices
        if XLA chooses the shardings.
      linear: the number of trailing operands in which the operator is linear; of fewer
        operands, all. The ones before them are data, such as a condition.
      transpose: the transpose of the operator as a function of its linear operands,
        `(primitive, static attributes, cotangent, operands) -> cotangents`, with None
        where none is needed. The operator has one output. None for an operator without
        a derivative.
      kernels: for a platform ("cuda", "tpu"), the operator as a Pallas kernel. Tests
        also have kernels for "cpu".
    """

    name: str
    xla: Form
    independent: Callable[..., Collection[int]] = lambda *_, **__: ()
    aligned: bool = True
    gathers: Callable[..., bool] = lambda **_: False
    sizes: Callable[..., Sequence[tuple[int, ...]]] | None = None
    dtype: np.dtype | None = None
    on_platform: Mapping[str, Form] = dataclasses.field(default_factory=dict)
    divisible: Form | None = None
    linear: int = 0
    transpose: Callable[..., Sequence[jax.Array | None]] | None = None
    kernels: Mapping[str, Kernel] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Registers the rules of the primitive with JAX."""
        primitive = self._primitive
        primitive.multiple_results = True
        primitive.def_impl(self._evaluate)
        primitive.def_abstract_eval(self._abstract_eval)
        batching.primitive_batchers[primitive] = self._batch
        ad.primitive_jvps[primitive] = self._jvp
        ad.primitive_transposes[primitive] = self._transpose_rule
        # JAX takes a rule that is registered without a platform for every one that has
        # no rule of its own, such as "rocm".
        for platform in ("", "cpu", "cuda", "tpu"):
            rule = functools.partial(self._lower, platform)
            mlir.register_lowering(primitive, rule, platform=platform or None)

    @functools.cached_property
    def _primitive(self) -> Primitive:
        return Primitive(f"dmljax_{self.name}")

    def __call__(
        self, *operands: jax.Array, implementation: Implementation = None, **static: Any
    ) -> Outputs:
        """Computes the outputs for operands in normal form and hashable attributes."""
        options = static | {"implementation": implementation}
        # With a weak type, JAX would promote the outputs as it does Python numbers.
        operands = tuple(map(drop_weak_type, operands))
        mesh = explicit_mesh(*operands)
        if mesh is None:
            return tuple(self._primitive.bind(*varying_alike(*operands), **options))
        # The types of the operands have the mesh, so the definition can't be traced
        # with them: its operations would ask how each of them is sharded.
        whole = [jax.core.ShapedArray(x.shape, x.dtype) for x in operands]
        outputs = self._abstract_eval(*whole, **options)
        return over_explicit_mesh(
            self.name.upper(),
            functools.partial(self, **options),
            mesh,
            operands,
            [output.shape for output in outputs],
            independent=self.independent(*operands, **static),
            aligned=self.aligned,
            gathers=self.gathers(**static),
        )

    # THE CHOICE OF A FORM

    def _lower(
        self,
        platform: str,
        context: Context,
        *operands: Any,
        implementation: Implementation,
        **static: Any,
    ) -> Any:
        """Lowers a call for `platform`: the rule that JAX calls."""
        kernel = self.kernels.get(platform)
        if implementation == "pallas":
            require_kernel(self.name.upper(), platform, kernel is not None, context)
            assert kernel is not None
            return lower(kernel.form, context, *operands, **static)
        if implementation is None and kernel and kernel.is_default(platform, context):
            # A kernel may refuse a type or a size. XLA's form then runs.
            with contextlib.suppress(NoKernelError):
                return lower(kernel.form, context, *operands, **static)
        # The form of a platform is faster on one device, but XLA may divide it badly.
        form = self.divisible or self.xla
        if is_local(context):
            form = self.on_platform.get(platform, self.xla)
        return lower(form, context, *operands, **static)

    # THE OTHER RULES

    def _evaluate(self, *operands: jax.Array, **static: Any) -> Outputs:
        """Computes the outputs for concrete arrays."""
        run = functools.partial(_compiled, self, tuple(static.items()))
        return evaluate(self.name, run, *operands)

    def _abstract_eval(
        self, *operands: jax.core.ShapedArray, implementation: Any, **static: Any
    ) -> list[jax.core.ShapedArray]:
        """Returns the types of the outputs: those of the definition."""
        del implementation
        # With a mesh, a type also says how the output is sharded or over which axes it
        # varies. That follows from the operations of the definition.
        meshes = [get_abstract_mesh(), *(x.sharding.mesh for x in operands)]
        if self.sizes and all(mesh.empty for mesh in meshes):
            dtype = self.dtype or operands[-1].dtype
            sizes = self.sizes(*operands, **static)
            outputs = [jax.core.ShapedArray(each, dtype) for each in sizes]
        else:
            definition = functools.partial(self.xla, **static)
            outputs = list(jax.make_jaxpr(definition)(*operands).out_avals)
        for output in outputs:
            check_elements(self.name.upper(), output.shape)
        return outputs

    def _batch(
        self, operands: Sequence[jax.Array], dims: Sequence[int | None], **static: Any
    ) -> tuple[Outputs, list[int]]:
        """Adds a batch dimension in front, of size 1 where an operand is shared."""
        batches = []
        for operand, dim in zip(operands, dims, strict=True):
            if dim is None:
                batch = jnp.expand_dims(operand, 0)
            else:
                batch = jnp.moveaxis(operand, dim, 0)
            batches.append(batch)
        with whole_mesh():
            outputs = self(*batches, **static)
        return outputs, [0] * len(outputs)

    def _jvp(
        self, primals: Sequence[jax.Array], tangents: Sequence[Any], **static: Any
    ) -> tuple[Outputs, Sequence[Any]]:
        """Runs the operator again, on the tangents of the operands it is linear in."""
        outputs = self(*primals, **static)
        if self.transpose is None:
            return outputs, [ad.Zero(jax.typeof(o).to_tangent_aval()) for o in outputs]
        # JAX calls the rule if a tangent is no symbolic zero. The data are integers and
        # truth values, which have such zeros, so it is the tangent of a linear operand.
        # PADDING has one linear operand less without a value.
        first = max(len(primals) - self.linear, 0)
        linear = map(_instantiate, tangents[first:])
        return outputs, self(*primals[:first], *linear, **static)

    def _transpose_rule(
        self, cotangents: Sequence[Any], *operands: Any, **static: Any
    ) -> Sequence[jax.Array | None]:
        assert self.transpose is not None, "only linear operators are transposed"
        (cotangent,) = cotangents
        return self.transpose(self, static, _instantiate(cotangent), operands)


def _instantiate(tangent: Any) -> Any:
    """Returns an array of zeros for JAX's symbol of one."""
    if isinstance(tangent, ad.Zero):
        return tangent.instantiate()
    return tangent


def evaluate(name: str, run: Form, /, *operands: jax.Array) -> Outputs:
    """Runs a primitive on concrete arrays. `run` is a compiled function of it.

    A primitive is always compiled to be evaluated, also where the caller has disabled
    jit. If JAX's debug_nans finds a NaN in a program, JAX runs the program again and
    evaluates its primitives one by one: each has to find its own NaN.
    """
    tests = []
    config: Any = jax.config
    if config.jax_debug_nans:
        tests.append(("nan", jnp.isnan))
    if config.jax_debug_infs:
        tests.append(("inf", jnp.isinf))
    with jax.disable_jit(False), jax.debug_nans(False), jax.debug_infs(False):
        outputs = run(*operands)
        for (kind, test), output in itertools.product(tests, outputs):
            if jnp.issubdtype(output.dtype, np.inexact) and test(output).any():
                raise FloatingPointError(
                    f"invalid value ({kind}) encountered in {name}"
                )
    return outputs


def unbroadcast(cotangent: jax.Array, operand: ad.UndefinedPrimal) -> jax.Array:
    """Sums the cotangent along the dimensions in which `operand` is shared."""
    shape = operand.aval.shape
    shared = [i for i, n in enumerate(shape) if n != cotangent.shape[i]]
    return cotangent.sum(shared, keepdims=True, dtype=cotangent.dtype)


def check_implementation(operator: str, implementation: Any) -> None:
    """Requires that the form that a caller asks for is a known one."""
    # An array would be compared element by element.
    name = implementation is None or isinstance(implementation, str)
    if not (name and implementation in (None, "xla", "pallas")):
        raise DescriptorError(
            f"{operator}: implementation is {as_python(implementation)}; it must be "
            "one of None, 'xla', 'pallas'."
        )


@functools.partial(jax.jit, static_argnums=(0, 1))
def _compiled(
    operator: OperatorPrimitive, static: tuple[tuple[str, Any], ...], *operands: Any
) -> Outputs:
    """Runs the primitive as a program, cached by operator and attributes."""
    return tuple(operator._primitive.bind(*operands, **dict(static)))
