"""Known vulnerabilities of the packages in this environment: ``python -m tests.audit``, a part of ``make lint``.

pip-audit asks PyPI's advisory database about each installed version. Where the database cannot be reached, as in a
closed network, the audit says which part it could not do and does not fail: the packages are the same ones elsewhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from typing import Any

# An advisory that does not concern us, by its id, and why.
ACCEPTED: dict[str, str] = {}
TIMEOUT_S = 120


def ask() -> list[dict[str, Any]] | None:
    """What pip-audit says of each package; None if it got no answer."""
    command = [sys.executable, "-m", "pip_audit", "--path", sysconfig.get_paths()["purelib"]]
    command += ["--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        return None
    return found


def judge(packages: list[dict[str, Any]] | None) -> tuple[bool, list[str]]:
    """Whether the environment passes, and the lines to print."""
    if packages is None or all("skip_reason" in package for package in packages):  # a mirror may answer, and know none
        return True, ["pip-audit: the advisory database cannot be reached from here; no package was audited"]
    lines = []
    for package in packages:
        for advisory in package.get("vulns", ()):
            if not ACCEPTED.keys() & {advisory["id"], *advisory.get("aliases", ())}:
                fixed = ", ".join(advisory.get("fix_versions", ())) or "no version yet"
                lines.append(f"{package['name']} {package['version']}: {advisory['id']}, fixed in {fixed}")
    unknown = sum("skip_reason" in package for package in packages)
    summary = f"pip-audit: {len(packages) - unknown} packages audited, {unknown} not known to the advisory database"
    return not lines, [*lines, summary]


def main() -> int:
    passed, lines = judge(ask())
    print("\n".join(lines))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
