"""``voicestream dashboard``: what goes with the metrics, for Grafana and Prometheus."""

from __future__ import annotations

import argparse
from importlib.resources import files

from voicestream.cli.options import Commands
from voicestream.observe.metrics import ALERTS, DASHBOARD, read_package_file

__all__ = ["add_command", "run"]


def add_command(commands: Commands) -> None:
    """Add ``dashboard`` to the command line."""
    parser = commands.add_parser(
        "dashboard",
        help="print the Grafana dashboard or the alert rules",
        description="Print the dashboard for Grafana (JSON, to be imported), or the alert rules for Prometheus. The metrics themselves "
        "come from voicestream serve --metrics PORT, or from voicestream.observe.metrics.",
    )
    parser.add_argument("--alerts", action="store_true", help="the alert rules (YAML) instead of the dashboard")
    parser.add_argument("--path", action="store_true", help="only where the file is")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print it."""
    name = ALERTS if options.alerts else DASHBOARD
    print(files("voicestream.observe").joinpath(name) if options.path else read_package_file(name).rstrip("\n"))
    return 0
