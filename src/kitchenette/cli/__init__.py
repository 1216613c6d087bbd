"""The command ``kitchenette``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command, or print what to install if its libraries are missing."""
    try:
        from kitchenette.cli.app import app
    except KeyboardInterrupt:  # loading the libraries takes a second or two
        print("kitchenette: Interrupted.", file=sys.stderr)
        sys.exit(130)
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich"}:
            raise
        sys.exit(
            f"The command needs {missing.name}, which is not installed. "
            "Install it with: pip install 'kitchenette[cli]'"
        )
    app()
