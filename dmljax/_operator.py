"""The path that every operator takes: arguments, dispatch, derivatives, batches.

An operator is one JAX primitive in a normal form: all operands are arrays of the same
rank; along the leading, batch dimensions an operand has either the full size or 1 (then
it is shared); static attributes speak of trailing axes only. So a batch dimension more
changes no attribute, and one batching rule serves every operator.

A primitive, rather than jax.custom_jvp or custom_vjp around a kernel, because it alone
has every transformation, and because its lowering is chosen per platform when a program
is lowered: also in a program that is exported on one machine for another.
"""

import contextlib
import dataclasses
import enum
import functools
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import AbstractMesh, use_abstract_mesh
from jax.typing import ArrayLike

from dmljax._check import require, require_one_of, require_same, show
from dmljax._default import KERNEL_FROM
from dmljax._partition import (
    Division,
    Partition,
    explicit_mesh,
    is_whole,
    lower_partitioned,
    mesh_sizes,
    over_explicit_mesh,
)
from dmljax._partition import Outputs as Outputs
from dmljax._tensor import x64_enabled
from dmljax.pallas import (
    BACKENDS,
    PACKAGES,
    UnsupportedError,
    kernels_available,
    kernels_lowered,
)

Implementation = Literal["xla", "pallas"] | None
NO_MESH = AbstractMesh((), ())


class Context(enum.Enum):
    """Where a call stands whose form is chosen by default."""

    ALONE = "alone"  # a program in which the operator has no neighbours
    PIPELINE = "pipeline"


# None is the default in a pipeline.
Choice = Implementation | Literal[Context.ALONE]
Form = Callable[..., Outputs]
# (operator, static attributes, cotangents, operands) -> a cotangent for each operand,
# None for those that need none.
Transpose = Callable[..., Sequence[jax.Array | None]]


@dataclasses.dataclass(frozen=True, eq=False)
class Operator:
    """One operator in normal form; calling it binds the primitive.

    Attributes:
      name: in snake_case; the primitive, profiles and errors show it.
      xla: the definition in jax.numpy, `(*operands, **static) -> outputs`.
      xla_on: by platform ("cpu", "cuda", "tpu"), a jax.numpy form that suits it better.
      xla_alone: by platform, a jax.numpy form that suits a program of its own better.
      partition: how it is divided among the devices of a mesh.
      data_operands: where the leading operands end that are data, such as a condition,
        counted as in a slice; in the operands after them the operator is linear.
      transpose: of the operator as a function of its linear operands; None for an
        operator without a derivative.
      kernels: by platform ("cuda", "tpu"), a form that may stand in for `xla`; it
        takes `interpret=` besides, as `kernel` says.
      measured_as: of the platform, operands and static attributes, the name by which
        the default is looked up; None for `name`.
    """

    name: str
    xla: Form
    partition: Partition
    xla_on: Mapping[str, Form] = dataclasses.field(default_factory=dict)
    xla_alone: Mapping[str, Form] = dataclasses.field(default_factory=dict)
    data_operands: int = 0
    transpose: Transpose | None = None
    kernels: Mapping[str, Form] = dataclasses.field(default_factory=dict)
    measured_as: Callable[[str, Sequence[Any], dict[str, Any]], str] | None = None

    def __post_init__(self) -> None:
        """Registers the rules of the primitive with JAX."""
        primitive = self._primitive
        primitive.multiple_results = True
        primitive.def_impl(functools.partial(self._run, ""))
        primitive.def_abstract_eval(self._abstract_eval)
        batching.primitive_batchers[primitive] = self._batch
        ad.primitive_jvps[primitive] = self._jvp
        ad.primitive_transposes[primitive] = self._transpose_rule
        for platform in ("", "cpu", "cuda", "rocm", "tpu"):
            mlir.register_lowering(
                primitive, self._lowering(platform), platform=platform or None
            )

    def __call__(
        self, *operands: jax.Array, implementation: Choice, **static: Any
    ) -> Outputs:
        """The outputs, as a tuple; `static` holds hashable attributes."""
        if implementation is not Context.ALONE:
            self._check_implementation(implementation)
        static["implementation"] = implementation
        mesh = explicit_mesh(*operands)
        if mesh is not None:
            whole = (jax.core.ShapedArray(x.shape, x.dtype) for x in operands)
            outputs = self._abstract_eval(*whole, **static)
            division = self._division(operands, outputs, static)
            return over_explicit_mesh(self.name.upper(), mesh, division, operands)
        bound = self._primitive.bind(*alike_in_shard_map(*operands), **static)
        return tuple(bound)

    def _check_implementation(self, implementation: Implementation) -> None:
        name, choices = self.name.upper(), (None, "xla", "pallas")
        require_one_of(name, "implementation", implementation, choices)
        require(
            name,
            implementation != "pallas" or bool(self.kernels),
            "implementation='pallas' was asked for, and this operator has no kernel; "
            "use None or 'xla'.",
        )

    @functools.cached_property
    def _primitive(self) -> Primitive:
        return Primitive(f"dmljax_{self.name}")

    def _run(
        self,
        platform: str,
        *operands: jax.Array,
        implementation: Choice,
        **static: Any,
    ) -> Outputs:
        """The form that serves on `platform`; "" is one without forms of its own."""
        if implementation is Context.ALONE and platform in self.xla_alone:
            return self.xla_alone[platform](*operands, **static)
        if implementation != "pallas":
            return self.xla_on.get(platform, self.xla)(*operands, **static)
        return self._kernel(platform)(*operands, **static)

    def _kernel(self, platform: str) -> Form:
        """The kernel that serves on `platform`: on a CPU a GPU's, interpreted."""
        interpret = platform in ("", "cpu")
        form = self.kernels.get("cuda" if interpret else platform)
        if form is None:
            raise NotImplementedError(
                f"{self.name.upper()}: implementation='pallas' was asked for; there is "
                f"no kernel for platform {platform or 'cpu'!r}. Use None or 'xla'."
            )
        return functools.partial(form, interpret=interpret)

    def _lowering(self, platform: str) -> Callable[..., Any]:
        """The rule for `platform`, which picks a form when a program is lowered."""

        def rule(
            context: mlir.LoweringRuleContext,
            *operands: Any,
            implementation: Choice,
            **static: Any,
        ) -> Any:
            def lowered(choice: Choice) -> Any:
                run = functools.partial(self._run, platform, implementation=choice)
                return _lower(run, platform, context, choice)(*operands, **static)

            if implementation == "pallas":
                self._kernel(platform)  # or an error, before XLA asks for it
            sizes = None if _is_local(context) else mesh_sizes(context, platform)
            rule = self._rule(platform, implementation, context.avals_in, static)
            moves = self.partition.moves(**static)
            # XLA needs to be told how: it can't divide what moves, or a kernel.
            if sizes and (implementation == "pallas" or rule or moves):
                static["implementation"] = implementation
                division = self._division(context.avals_in, context.avals_out, static)

                def definition(*operands: jax.Array) -> Outputs:
                    return self._definition(*operands, **static)

                return lower_partitioned(context, sizes, division, definition, operands)
            if implementation in ("xla", "pallas"):
                return lowered(implementation)
            if self._prefers_kernel(platform, rule, context):
                # What only a kernel can't take has another form.
                with contextlib.suppress(UnsupportedError):
                    return lowered("pallas")
            return lowered(implementation)

        return rule

    def _division(
        self, operands: Sequence[Any], outputs: Sequence[Any], static: dict[str, Any]
    ) -> Division:
        taken, given = (tuple(x.shape for x in xs) for xs in (operands, outputs))
        return Division(self.partition, taken, given, static)

    def _rule(
        self,
        platform: str,
        implementation: Choice,
        operands: Sequence[Any],
        static: dict[str, Any],
    ) -> Mapping[int, int]:
        """From how many elements on a kernel is the default, by bytes of an element."""
        if isinstance(implementation, str):
            return {}
        context = implementation or Context.PIPELINE
        rules = KERNEL_FROM.get(platform, {}).get(context.value, {})
        name = self.name
        if self.measured_as:
            name = self.measured_as(platform, operands, static)
        return rules.get(name, {})

    def _prefers_kernel(
        self, platform: str, rule: Mapping[int, int], context: mlir.LoweringRuleContext
    ) -> bool:
        """Whether the kernel is known to win, and would run as it was measured."""
        arrays: list[Any] = [*context.avals_in, *context.avals_out]
        least = rule.get(arrays[len(context.avals_in) - 1].dtype.itemsize)
        return (
            least is not None
            and max(array.size for array in arrays) >= least
            and kernels_available(platform)
            and _is_local(context)
        )

    def _definition(
        self, *operands: jax.Array, implementation: Any, **static: Any
    ) -> Outputs:
        """What every form computes, in its shapes."""
        del implementation
        return self.xla(*operands, **static)

    def _abstract_eval(
        self, *operands: jax.core.ShapedArray, **static: Any
    ) -> list[jax.core.ShapedArray]:
        definition = functools.partial(self._definition, **static)
        return list(jax.make_jaxpr(definition)(*operands).out_avals)

    def _batch(
        self, operands: Sequence[jax.Array], dims: Sequence[int | None], **static: Any
    ) -> tuple[Outputs, list[int]]:
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
        outputs = self(*primals, **static)
        linear_tangents = tangents[self.data_operands :]
        if self.transpose is None or all(_is_zero(t) for t in linear_tangents):
            return outputs, [_zero_tangent(out) for out in outputs]
        data = primals[: self.data_operands]
        tangents = self(*data, *map(ad.instantiate_zeros, linear_tangents), **static)
        return outputs, tangents

    def _transpose_rule(
        self, cotangents: Sequence[Any], *operands: Any, **static: Any
    ) -> Sequence[jax.Array | None]:
        assert self.transpose is not None, "only linear operators are transposed"
        cotangents = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
        return self.transpose(self, static, cotangents, operands)


# Where JAX does not say what is traced, no state equals another: no call is alone.
_trace_state = getattr(jax.extend.core, "get_opaque_trace_state", object)
_TOP_LEVEL = _trace_state()


def in_context(implementation: Implementation) -> Choice:
    """`implementation`, where a default says whether the call is a program of its own.

    That it is outside of jit and of every transformation: nothing can be fused with it.
    """
    if implementation is None and _trace_state() == _TOP_LEVEL:
        return Context.ALONE
    return implementation


def kernel(name: str, platform: str = "cuda") -> Form:
    """The kernel of the operator `name` for `platform`, for `Operator.kernels`.

    It takes `interpret=`: whether Pallas' interpreter runs it, on any platform. Its
    module is imported when it is first needed: JAX may come without its backend.
    """

    def form(*operands: jax.Array, **static: Any) -> Outputs:
        if not kernels_available(platform):
            raise NotImplementedError(
                f"{name.upper()}: implementation='pallas' needs "
                f"{BACKENDS[platform]}, which this JAX, "
                f"{jax.__version__}, does not have; use None or 'xla'."
            )
        module = importlib.import_module(f"{PACKAGES[platform]}._{name}")
        outputs: Outputs = getattr(module, name)(*operands, **static)
        return outputs

    return form


def _is_local(context: mlir.LoweringRuleContext) -> bool:
    """Whether the arrays of a program that is being lowered are those of one device.

    A kernel is not partitioned: it would gather what is sharded. The attributes of
    JAX's context are undocumented; without them the answer is no, and XLA's form runs.
    """
    axes = context.module_context.axis_context
    mesh, manual = getattr(axes, "mesh", None), getattr(axes, "manual_axes", ())
    if mesh is not None and set(mesh.axis_names) == set(manual):
        return True  # inside a shard_map over all axes
    if getattr(axes, "num_devices", None) == 1:
        return True
    arrays: list[Any] = [*context.avals_in, *context.avals_out]
    return all(is_whole(array.sharding) for array in arrays)


def _lower(
    form: Form, platform: str, context: mlir.LoweringRuleContext, choice: Choice
) -> Callable[..., Any]:
    """How to lower a form: without a mesh for a kernel, and where all is local."""
    kernel = choice == "pallas"

    def lower(*operands: Any, **static: Any) -> Any:
        lower_form = mlir.lower_fun(form, multiple_results=True)
        if not kernel and not _is_local(context):
            return lower_form(context, *operands, **static)
        with kernels_lowered(platform) if kernel else use_abstract_mesh(NO_MESH):
            return lower_form(_on_one_device(context), *operands, **static)

    return lower


def _on_one_device(context: mlir.LoweringRuleContext) -> mlir.LoweringRuleContext:
    """The context without what a kernel does not see: the mesh of a shard_map."""

    def bare(array: Any) -> jax.core.ShapedArray:
        return jax.core.ShapedArray(array.shape, array.dtype)

    bare_context: mlir.LoweringRuleContext = context.replace(
        avals_in=list(map(bare, context.avals_in)),
        avals_out=list(map(bare, context.avals_out)),
    )
    return bare_context


def alike_in_shard_map(*arrays: jax.Array) -> list[jax.Array]:
    """The arrays, varying over the same axes of a mesh inside a shard_map.

    The cast of an array that is the same on all devices is what makes its cotangent the
    sum over the devices.
    """
    types = [jax.typeof(array).manual_axis_type for array in arrays]
    axes = [frozenset() if mat is None else mat.varying for mat in types]
    everywhere = frozenset().union(*axes)
    return [
        lax.pcast(array, tuple(everywhere - own), to="varying")
        if everywhere - own
        else array
        for array, own in zip(arrays, axes, strict=True)
    ]


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
    operator: Operator,
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


def is_floating(dtype: np.dtype) -> bool:
    """Whether `dtype` is real floating point, the small floats included."""
    return jnp.issubdtype(dtype, jnp.floating)


def is_integer(dtype: np.dtype) -> bool:
    """Whether `dtype` is an integer type, the 4-bit ones included."""
    return jnp.issubdtype(dtype, jnp.integer)


def check_x64(operator: str, name: str, dtype: np.dtype) -> None:
    """Requires JAX's x64 mode for 64-bit types: JAX would truncate them in silence."""
    wide = (dtype.itemsize == 8 and dtype.kind in "fiu") or dtype == np.complex128
    require(
        operator,
        x64_enabled() or not wide,
        f"'{name}' has data type {show(dtype)}, which needs JAX's x64 mode. Turn it on "
        "with jax.config.update('jax_enable_x64', True) or JAX_ENABLE_X64=1, or "
        "convert the data to a 32-bit type.",
    )


def is_python_number(value: Any) -> bool:
    """Whether `value` is a number without a data type of its own."""
    # NumPy's float64 is a subclass of Python's float, and does have a type.
    python = isinstance(value, (bool, int, float, complex))
    return python and not isinstance(value, np.generic)


def as_array(operator: str, name: str, value: ArrayLike) -> jax.Array | np.ndarray:
    """`value` as an array whose type JAX keeps; TypeError if it is none."""
    if isinstance(value, jax.Array):
        if not jnp.issubdtype(value.dtype, np.number) and value.dtype != bool:
            raise TypeError(f"{operator}: '{name}' has elements of type {value.dtype}.")
        return value
    if not (isinstance(value, (np.ndarray, np.generic)) or is_python_number(value)):
        raise TypeError(
            f"{operator}: '{name}' must be an array, not {type(value).__name__}; "
            "convert it with jnp.asarray."
        )
    array = np.asarray(value)
    if is_python_number(value):
        default = jnp.asarray(type(value)(0)).dtype
        # An integer that does not fit stays what it is: a 64-bit one, or an object.
        least = np.min_scalar_type(value) if isinstance(value, int) else default
        array = array.astype(default) if np.can_cast(least, default) else array
    # JAX's compiled functions take swapped bytes as they are, once they are cached.
    wide = array.dtype.itemsize > (16 if array.dtype.kind == "c" else 8)
    number = jnp.issubdtype(array.dtype, np.number) or array.dtype == bool
    if wide or not number or not array.dtype.isnative:
        raise TypeError(
            f"{operator}: '{name}' has elements of type {array.dtype}; they must be "
            "numbers of a type that JAX has, in native byte order."
        )
    check_x64(operator, name, array.dtype)
    return array


def as_scalar(
    operator: str, name: str, value: ArrayLike, dtype: np.dtype
) -> jax.Array | np.ndarray:
    """`value` as an array of rank 0 and of type `dtype`.

    A Python number takes the type, and must be exact in it but for floating-point
    rounding; an array must have it.
    """
    if is_python_number(value):
        return _from_python(operator, name, value, dtype)
    array = as_array(operator, name, value)
    require(
        operator,
        array.shape == (),
        f"{name} has sizes {show(array.shape)}; it must be a scalar.",
    )
    return typed_as(operator, name, array, dtype)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Constant:
    """A scalar that is part of a program, and not copied to the device in each call.

    Attributes:
      value: 0 or 1, which are usual; for another number nothing should compile anew.
      dtype: its type.
    """

    value: int
    dtype: np.dtype

    def array(self) -> np.ndarray:
        """The scalar."""
        return np.asarray(self.value).astype(self.dtype)


def as_operand(
    operator: str, name: str, value: ArrayLike, dtype: np.dtype
) -> jax.Array | np.ndarray | Constant:
    """As `as_scalar`; a Python number that is 0 or 1 is a constant.

    `strong` makes an array of both.
    """
    scalar = as_scalar(operator, name, value, dtype)
    if is_python_number(value):
        for constant in (Constant(number, dtype) for number in (0, 1)):
            if constant.array().tobytes() == np.asarray(scalar).tobytes():
                return constant
    return scalar


def typed_as(
    operator: str, name: str, array: jax.Array | np.ndarray, dtype: np.dtype
) -> jax.Array | np.ndarray:
    """`array` if it has type `dtype`, or takes it as a weakly typed one does.

    A weak type is a Python number's that was traced. What value it has is not known
    then, so it must not be of a kind that the type could not hold.
    """
    if array.dtype == dtype:
        return array
    weak = isinstance(array, jax.Array) and jax.typeof(array).weak_type
    require(
        operator,
        weak and array.dtype.kind in _kinds_held(dtype),
        f"{name} has data type {show(array.dtype)}, while the tensor has "
        f"{show(dtype)}; both must be the same.",
    )
    return lax.convert_element_type(array, dtype)


def _kinds_held(dtype: np.dtype) -> str:
    """The kinds of Python numbers that a type holds, by NumPy's letters."""
    if jnp.issubdtype(dtype, np.complexfloating):
        return "biufc"
    return "biuf" if is_floating(dtype) else "biu" if is_integer(dtype) else "b"


def strong(array: jax.Array | Constant) -> jax.Array:
    """`array` without a weak type, which would let a result be promoted later."""
    return lax.convert_element_type(_given(array), array.dtype)


def _given(array: jax.Array | Constant) -> jax.Array:
    return jnp.asarray(array.array()) if isinstance(array, Constant) else array


def strong_types(
    operator: str,
    first: tuple[str, jax.Array | Constant],
    second: tuple[str, jax.Array | Constant],
) -> tuple[jax.Array, jax.Array]:
    """Two tensors, given as (name, array), of one type; a weak type gives way."""
    first, second = ((name, _given(x)) for name, x in (first, second))
    (_, a), (_, b) = first, second
    weak_a, weak_b = (jax.typeof(x).weak_type for x in (a, b))
    if weak_a != weak_b:
        (name, weak), (_, other) = (first, second) if weak_a else (second, first)
        typed = jnp.asarray(typed_as(operator, name, weak, other.dtype))
        return (typed, other) if weak_a else (other, typed)
    pair = ((name, array.dtype) for name, array in (first, second))
    require_same(operator, "data types", *pair)
    return strong(a), strong(b)


def _from_python(operator: str, name: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """A Python number as an array of rank 0 of type `dtype`."""
    problem = _misfit(value, dtype)
    if problem:
        require(operator, False, f"{name} is {value!r}; {show(dtype)} {problem}.")
    with np.errstate(over="ignore"):  # past the largest float is infinity
        exact = (
            value if is_integer(dtype) or isinstance(value, complex) else float(value)
        )
        return np.asarray(exact).astype(dtype)


def _misfit(value: Any, dtype: np.dtype) -> str | None:
    """What keeps a Python number from being of type `dtype`, if anything does."""
    if isinstance(value, complex):
        fits = jnp.issubdtype(dtype, np.complexfloating)
        return None if fits else "has no imaginary part"
    if jnp.issubdtype(dtype, np.bool_):
        return None if value in (0, 1) else "holds False and True"
    if is_integer(dtype):
        limits = jnp.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        if not (math.isfinite(value) and value == int(value)):
            return "holds whole numbers"
        return None if low <= value <= high else f"holds {low} to {high}"
    huge = isinstance(value, int) and abs(value) >= 2**1023
    return "holds no numbers of this size" if huge else None


def as_integer(operator: str, name: str, value: Any) -> int:
    """`value` as a Python integer, from whatever says that it is one."""
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError(
            f"{operator}: {name} must be an integer that is known when the program is "
            f"traced, not {type(value).__name__}."
        ) from None


def as_sizes(operator: str, name: str, values: Sequence[Any]) -> tuple[int, ...]:
    """`values` as a tuple of Python integers."""
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
        raise TypeError(
            f"{operator}: {name} must be a sequence of integers, not "
            f"{type(values).__name__}."
        )
    return tuple(as_integer(operator, name, value) for value in values)
