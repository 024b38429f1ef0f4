"""Load on one server process: how much CPU a call costs, beside aiortc."""
