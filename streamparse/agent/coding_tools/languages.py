"""What a definition looks like in each language, as tables over the syntax trees of ast-grep (tree-sitter's names).

A name defines something if the way from it up to a node of ``DEFINES`` leads only through nodes of ``THROUGH``, each
time by the field that is named there. ``int *f(int a)`` defines ``f`` and, by way of its parameter list, not ``a``.
"""

from __future__ import annotations

from typing import NamedTuple

Kind = str
"""``function``, ``class`` or ``variable``: what can be searched for."""


class Definition(NamedTuple):
    """A node that defines: the kind, the word for it, and the field in which the name stands."""

    kind: Kind
    word: str
    field: str = "name"


LANGUAGES: dict[str, str] = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    ".jsx": "jsx",
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".c": "c",
    **dict.fromkeys((".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp"), "cpp"),  # .h: C is nearly all of it
}
"""The language by the end of a file's name."""

_PYTHON = {
    "function_definition": Definition("function", "function"),
    "class_definition": Definition("class", "class"),
    "assignment": Definition("variable", "variable", "left"),
    "named_expression": Definition("variable", "variable"),
    "type_alias_statement": Definition("class", "type", "left"),
}
_JAVASCRIPT = {
    "function_declaration": Definition("function", "function"),
    "generator_function_declaration": Definition("function", "function"),
    "method_definition": Definition("function", "method"),
    "class_declaration": Definition("class", "class"),
    "class": Definition("class", "class"),
    "variable_declarator": Definition("variable", "variable"),
    "field_definition": Definition("variable", "field", "property"),
    "assignment_expression": Definition("variable", "assignment", "left"),
    "pair": Definition("variable", "property", "key"),
}
_TYPESCRIPT = {
    **_JAVASCRIPT,
    "public_field_definition": Definition("variable", "field"),
    "function_signature": Definition("function", "function"),
    "method_signature": Definition("function", "method"),
    "abstract_method_signature": Definition("function", "method"),
    "property_signature": Definition("variable", "property"),
    "abstract_class_declaration": Definition("class", "class"),
    "interface_declaration": Definition("class", "interface"),
    "type_alias_declaration": Definition("class", "type"),
    "enum_declaration": Definition("class", "enum"),
    "internal_module": Definition("class", "namespace"),
}
_GO = {
    "function_declaration": Definition("function", "function"),
    "method_declaration": Definition("function", "method"),
    "method_elem": Definition("function", "method"),
    "type_spec": Definition("class", "type"),
    "type_alias": Definition("class", "type"),
    "const_spec": Definition("variable", "constant"),
    "var_spec": Definition("variable", "variable"),
    "short_var_declaration": Definition("variable", "variable", "left"),
    "field_declaration": Definition("variable", "field"),
}
_RUST = {
    "function_item": Definition("function", "function"),
    "function_signature_item": Definition("function", "function"),
    "macro_definition": Definition("function", "macro"),
    "struct_item": Definition("class", "struct"),
    "enum_item": Definition("class", "enum"),
    "union_item": Definition("class", "union"),
    "trait_item": Definition("class", "trait"),
    "type_item": Definition("class", "type"),
    "mod_item": Definition("class", "module"),
    "enum_variant": Definition("variable", "variant"),
    "const_item": Definition("variable", "constant"),
    "static_item": Definition("variable", "static"),
    "let_declaration": Definition("variable", "variable", "pattern"),
    "field_declaration": Definition("variable", "field"),
}
_JAVA = {
    "method_declaration": Definition("function", "method"),
    "constructor_declaration": Definition("function", "constructor"),
    "class_declaration": Definition("class", "class"),
    "interface_declaration": Definition("class", "interface"),
    "enum_declaration": Definition("class", "enum"),
    "record_declaration": Definition("class", "record"),
    "annotation_type_declaration": Definition("class", "annotation"),
    "enum_constant": Definition("variable", "constant"),
    "variable_declarator": Definition("variable", "variable"),
}
_C = {
    "function_definition": Definition("function", "function", "declarator"),
    "declaration": Definition("variable", "variable", "declarator"),
    "field_declaration": Definition("variable", "field", "declarator"),
    "type_definition": Definition("class", "type", "declarator"),
    "struct_specifier": Definition("class", "struct"),
    "union_specifier": Definition("class", "union"),
    "enum_specifier": Definition("class", "enum"),
    "enumerator": Definition("variable", "constant"),
    "preproc_def": Definition("variable", "macro"),
    "preproc_function_def": Definition("function", "macro"),
}
_CPP = {
    **_C,
    "class_specifier": Definition("class", "class"),
    "namespace_definition": Definition("class", "namespace"),
    "alias_declaration": Definition("class", "type"),
    "concept_definition": Definition("class", "concept"),
}

DEFINES: dict[str, dict[str, Definition]] = {
    "python": _PYTHON,
    "javascript": _JAVASCRIPT,
    "jsx": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "go": _GO,
    "rust": _RUST,
    "java": _JAVA,
    "c": _C,
    "cpp": _CPP,
}
"""By language and by the name of the node."""

THROUGH: dict[str, str | None] = {
    # what may stand between a name and its definition, and the field by which (None: any)
    "pattern_list": None,
    "tuple_pattern": None,
    "list_pattern": None,
    "list_splat_pattern": None,
    "attribute": "attribute",
    "type": None,
    "object_pattern": None,
    "array_pattern": None,
    "rest_pattern": None,
    "pair_pattern": "value",
    "assignment_pattern": "left",
    "object_assignment_pattern": "left",
    "member_expression": "property",
    "expression_list": None,
    "mut_pattern": None,
    "ref_pattern": None,
    "tuple_struct_pattern": None,
    "function_declarator": "declarator",
    "init_declarator": "declarator",
    "array_declarator": "declarator",
    "pointer_declarator": "declarator",
    "parenthesized_declarator": None,
    "reference_declarator": None,
    "qualified_identifier": "name",
    "template_function": "name",
}

BODY_NEEDED = frozenset({"struct_specifier", "union_specifier", "enum_specifier", "class_specifier"})
"""Without a body these mention a type: ``struct point p;``."""

FUNCTIONS = frozenset({"arrow_function", "function_expression", "generator_function", "lambda", "func_literal"})
"""A variable with such a value is a function, in the eyes of who looks for it."""

NAMES: dict[str, tuple[str, ...]] = {
    "python": ("identifier",),
    **dict.fromkeys(
        ("javascript", "jsx"),
        ("identifier", "property_identifier", "private_property_identifier", "shorthand_property_identifier_pattern"),
    ),
    **dict.fromkeys(
        ("typescript", "tsx"),
        (
            "identifier",
            "type_identifier",
            "property_identifier",
            "private_property_identifier",
            "shorthand_property_identifier_pattern",
        ),
    ),
    **dict.fromkeys(("go", "rust", "c"), ("identifier", "type_identifier", "field_identifier")),
    "java": ("identifier", "type_identifier"),
    "cpp": ("identifier", "type_identifier", "field_identifier", "namespace_identifier", "destructor_name"),
}
"""The nodes that are names. ast-grep refuses a rule with a node that the grammar of the language does not have."""

SHAPES = {"struct_type": "struct", "interface_type": "interface"}
"""A better word for a type in Go: what it is made of."""
