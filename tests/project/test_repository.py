"""The workflow, CONTRIBUTING.md and the commit hooks agree with noxfile.py."""

import re

from tests.project.texts import ROOT, section

NOXFILE = (ROOT / "noxfile.py").read_text()
SESSIONS = re.findall(r"^@nox\.session.*\ndef (\w+)", NOXFILE, re.MULTILINE)
# They need machines or packages of their own, or run in another session as well.
ELSEWHERE = {"fuzz", "gpu", "tpu"}


def test_the_workflow_runs_every_session():
    text = (ROOT / ".github/workflows/checks.yml").read_text()
    assert re.findall(r"^ {10}- (\w+)$", text, re.MULTILINE) == [
        name for name in SESSIONS if name not in ELSEWHERE
    ]


def test_contributing_describes_every_session():
    table = section("CONTRIBUTING.md", "The matrix")
    described = re.findall(r"^\| `(\w+)` \| .* \| (yes|no)", table, re.MULTILINE)
    assert [name for name, _ in described] == SESSIONS
    assert {name for name, runs in described if runs == "no"} == ELSEWHERE


def test_linters_before_a_commit_are_those_of_the_session():
    body = NOXFILE.split("def lint(")[1].split("@nox.session")[0]
    calls = re.findall(r"session\.run\((.*)\)", body)
    commands = {" ".join(re.findall(r'"(.*?)"', call)) for call in calls}
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    entries = re.findall(r"entry: (.*)", hooks)
    assert entries
    assert set(entries) <= commands
