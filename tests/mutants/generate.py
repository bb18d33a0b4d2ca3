"""Makes faults: small changes of a module's syntax tree.

`faults("dmljax._overlap")` lists every fault of that module. To add a kind of fault,
add it to `_changes`, and a line to tests/project/test_mutants.py. Text is never
changed, nor are types, imports and assertions: they have no part in a result.
"""

import ast
import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parents[2]

# The operators that take the place of one, each in a fault of its own.
OTHERS = {
    "==": ["!="],
    "!=": ["=="],
    "<": ["<=", ">="],
    "<=": ["<", ">"],
    ">": [">=", "<="],
    ">=": [">", "<"],
    "in": ["not in"],
    "not in": ["in"],
    "is": ["is not"],
    "is not": ["is"],
    "and": ["or"],
    "or": ["and"],
    "+": ["-"],
    "-": ["+"],
    "*": ["//"],
    "//": ["*"],
    "/": ["*"],
    "%": ["//"],
    "**": ["*"],
    "<<": [">>"],
    ">>": ["<<"],
    "&": ["|"],
    "|": ["&"],
    "^": ["&"],
}


def _operator(sign: str) -> Any:
    """Returns the operator that is written between two operands."""
    node: Any = ast.parse(f"a {sign} b", mode="eval").body
    return node.ops[0] if isinstance(node, ast.Compare) else node.op


SIGNS = {type(_operator(sign)): sign for sign in OTHERS}
SIGNS |= {ast.Not: "not", ast.USub: "-", ast.Invert: "~"}
# The names that take each other's place.
SWAPPED = {"min": "max", "minimum": "maximum", "any": "all"}
SWAPPED |= {new: old for old, new in SWAPPED.items()}
# Arguments that count dimensions, and arguments that a call can do without.
AXES = {"axis", "dimension"}
OPTIONAL = {"dtype", "keepdims", "axis", "initial"}
# What has no part in a result: types, messages, and what can't happen.
UNTOUCHED = (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)
TYPES = {"None", "int", "float", "str", "bool"}

Function = ast.FunctionDef | None


@dataclasses.dataclass(frozen=True, eq=False)
class Fault:
    """A change of one node of a module's syntax tree.

    Attributes:
      module: the dotted name of the module.
      scope: the function, class or constant with the node, such as "TensorDesc.extent".
      what: the change, such as "<= -> <" or "drop call".
      old: the node.
      new: the node that takes its place.
      put: puts a node into this place of the tree.
    """

    module: str
    scope: str
    what: str
    old: Any
    new: ast.AST
    put: Callable[[ast.AST], None]

    def code(self) -> CodeType:
        """Compiles the module with the fault. Tracebacks show the right lines."""
        self.put(self.new)
        try:
            return _compiled(self.module)
        finally:
            self.put(self.old)

    def has_effect(self) -> bool:
        """Whether the compiled module differs from the one without the fault."""
        return self.code() != _compiled(self.module)

    @property
    def lines(self) -> str:
        """The lines of the file that the node is on."""
        lines = path_of(self.module).read_text().splitlines()
        return "\n".join(lines[self.old.lineno - 1 : self.old.end_lineno])

    def __str__(self) -> str:
        return f"{self.module}:{self.old.lineno} {self.scope}: {self.what}"

    def diff(self) -> str:
        """Returns the lines without and with the fault."""
        old = self.lines.encode()
        behind = len(old.splitlines()[-1]) - self.old.end_col_offset
        new = ast.unparse(self.new).encode()
        new = old[: self.old.col_offset] + new + old[len(old) - behind :]
        removed = [f"  - {line}" for line in old.decode().splitlines()]
        added = [f"  + {line}" for line in new.decode().splitlines()]
        return "\n".join(removed + added)


def path_of(module: str) -> Path:
    """Returns the file of a module."""
    return ROOT / f"{module.replace('.', '/')}.py"


@functools.cache
def faults(module: str) -> tuple[Fault, ...]:
    """Returns all faults of a module, from its first line to its last."""
    return tuple(_faults(module, _tree(module), "", None))


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse(path_of(module).read_text())


def _compiled(module: str) -> CodeType:
    return compile(_tree(module), path_of(module), "exec", dont_inherit=True)


def _faults(
    module: str, node: ast.AST, scope: str, function: Function
) -> Iterator[Fault]:
    """Yields the faults below a node."""
    if _is_untouched(node):
        return
    name = _name(node, function)
    scope = f"{scope}.{name}".strip(".") if name else scope
    function = node if isinstance(node, ast.FunctionDef) else function
    for child, put in _children(node):
        for what, new in _changes(child, node, function):
            ast.fix_missing_locations(ast.copy_location(new, child))
            yield Fault(module, scope, what, child, new, put)
        yield from _faults(module, child, scope, function)


def _is_untouched(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'")
    return isinstance(node, UNTOUCHED)


def _name(node: ast.AST, function: Function) -> str:
    """Returns the name that a definition gives, or an empty one."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if function is None and isinstance(node, ast.Assign | ast.AnnAssign):
        return ast.unparse(getattr(node, "target", None) or node.targets[0])
    return ""


def _children(node: ast.AST) -> Iterator[tuple[Any, Callable[[ast.AST], None]]]:
    """Yields the nodes right below a node, and what replaces each of them."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        if isinstance(value, ast.AST):
            yield value, functools.partial(setattr, node, name)
        elif isinstance(value, list):
            for i, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield child, functools.partial(value.__setitem__, i)


def _changes(
    node: Any, parent: Any, function: Function
) -> Iterator[tuple[str, ast.AST]]:
    """Yields what may take the place of a node, and what to call the change."""
    yield from _conditions(node, parent)
    match node:
        case ast.Constant(value=bool(value)):
            # strict= is an assertion: sequences of different lengths can't happen.
            if getattr(parent, "arg", "") != "strict":
                yield f"{value} -> {not value}", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield f"{value} -> {value + 1}", ast.Constant(value + 1)
            yield f"{value} -> {value - 1}", ast.Constant(value - 1)
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                for what, new in _others(op):
                    yield what, _with(node, ops=[*ops[:i], new, *ops[i + 1 :]])
        case ast.BinOp() if any(map(_is_text_or_type, [node.left, node.right])):
            pass
        case ast.BoolOp(op=op) | ast.BinOp(op=op):
            for what, new in _others(op):
                yield what, _with(node, op=new)
        case ast.UnaryOp(op=op, operand=operand):
            yield f"drop {SIGNS[type(op)]}", operand
        case ast.AugAssign(op=op):
            yield f"drop {SIGNS[type(op)]}=", ast.Pass()
            for what, new in _others(op):
                yield what, _with(node, op=new)
        case ast.Expr(value=ast.Call()):
            yield "drop call", ast.Pass()
        case ast.Return(value=value) if _returns_bool(function):
            # Other faults negate a comparison, and a constant.
            if not isinstance(value, ast.Compare | ast.Constant):
                yield "return not", ast.Return(ast.UnaryOp(ast.Not(), value))
        case ast.Name(id=name) if name in SWAPPED:
            yield f"{name} -> {SWAPPED[name]}", _with(node, id=SWAPPED[name])
        case ast.Attribute(attr=name) if name in SWAPPED:
            yield f"{name} -> {SWAPPED[name]}", _with(node, attr=SWAPPED[name])
        case ast.Slice():
            yield from _slices(node)
        case ast.keyword(arg=name, value=value) if name in AXES:
            if not _is_constant(value):
                yield f"{name} - 1", _with(node, value=_plus(value, -1))
        case ast.Call(keywords=keywords):
            for keyword in keywords:
                if keyword.arg in OPTIONAL:
                    others = [other for other in keywords if other is not keyword]
                    yield f"drop {keyword.arg}=", _with(node, keywords=others)


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    """Returns a node of the same kind with other fields."""
    return type(node)(**dict(ast.iter_fields(node)) | fields)


def _conditions(node: ast.AST, parent: Any) -> Iterator[tuple[str, ast.AST]]:
    """Yields constants in the place of a condition."""
    if node is getattr(parent, "test", None) or node in getattr(parent, "ifs", ()):
        # A loop without an end would only take time.
        if not isinstance(parent, ast.While):
            yield "if True", ast.Constant(True)
        yield "if False", ast.Constant(False)


def _others(op: ast.AST) -> Iterator[tuple[str, Any]]:
    """Yields the operators that may take the place of one."""
    sign = SIGNS[type(op)]
    for other in OTHERS.get(sign, ()):
        yield f"{sign} -> {other}", _operator(other)


def _slices(node: ast.Slice) -> Iterator[tuple[str, ast.AST]]:
    """Yields slices without a bound, and with one that is moved by 1."""
    for name in ("lower", "upper"):
        bound = getattr(node, name)
        if bound is not None:
            yield f"drop {name}", _with(node, **{name: None})
        if bound is not None and not _is_constant(bound):  # which has its own faults
            yield f"{name} + 1", _with(node, **{name: _plus(bound, 1)})
            yield f"{name} - 1", _with(node, **{name: _plus(bound, -1)})


def _plus(value: ast.expr, number: int) -> ast.expr:
    """Returns `value + number`, as people write it."""
    op = ast.Add() if number > 0 else ast.Sub()
    return ast.BinOp(value, op, ast.Constant(abs(number)))


def _is_constant(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant)


def _is_text_or_type(node: ast.expr) -> bool:
    if isinstance(node, ast.JoinedStr) or ast.unparse(node) in TYPES:
        return True
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _returns_bool(function: Function) -> bool:
    returned = function and function.returns
    return bool(returned) and ast.unparse(returned) in ("bool", "bool | None")
