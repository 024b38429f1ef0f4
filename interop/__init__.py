"""Interoperability: the suite (`python -m interop`) and the laboratory (`interop.lab`)."""
