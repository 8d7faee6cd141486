"""Annotations written as text, and the names they may use."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping


def scope_of(cls: Any, name: str) -> dict[str, Any]:
    """Return the names that the annotation of a member may use: those of the module that wrote it."""
    owner = next((base for base in cls.__mro__ if name in base.__dict__.get("__annotations__", ())), cls)
    module = sys.modules.get(owner.__module__)
    return {**(vars(module) if module else {}), owner.__name__: owner}


def resolve(annotation: Any, scope: Mapping[str, Any]) -> Any:
    """Return what a string annotation, or a forward reference, stands for."""
    text = getattr(annotation, "__forward_arg__", annotation)
    if not isinstance(text, str):
        return annotation
    try:
        return resolve(eval(text, dict(scope)), scope)
    except TypeError:
        if sys.version_info >= (3, 10):
            raise
        return resolve(_eval_unions(text, scope), scope)
    except SyntaxError:
        raise TypeError(f"the annotation {text!r} is not an expression") from None


def _eval_unions(text: str, scope: Mapping[str, Any]) -> Any:
    """Evaluate an annotation with `X | Y` on Python 3.9, which cannot."""
    import ast
    import typing

    class Rewrite(ast.NodeTransformer):
        def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
            self.generic_visit(node)
            pair = ast.Tuple(elts=[node.left, node.right], ctx=ast.Load())
            return ast.Subscript(value=ast.Name(id="__Union", ctx=ast.Load()), slice=pair, ctx=ast.Load())

    tree = ast.fix_missing_locations(Rewrite().visit(ast.parse(text, mode="eval")))
    return eval(compile(tree, "<annotation>", "eval"), {**scope, "__Union": typing.Union})
