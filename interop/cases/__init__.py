"""Cases of conformance, a file for each section of the specification. Importing this package registers all of them."""

from __future__ import annotations

from importlib import import_module

for _section in ("03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14"):
    import_module(f"interop.cases.section_{_section}")
