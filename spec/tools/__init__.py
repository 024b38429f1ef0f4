"""Tools that keep the specification and what is built on it together. They read `spec/` and what cites it, and need no package."""
