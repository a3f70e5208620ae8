"""Checks of what a CI run left behind, for `.ci/run`.

check.py tests OUTPUT   every test of the sources ran: none ignored, filtered out or skipped
check.py arm OUTPUT     the kernels' tests ran for 64-bit Arm, NEON among the levels
check.py avx512 OUTPUT TEST...
                        each of these tests ran, at level avx512 and none other
check.py demo JSON      the demo passed, its report and chart hold something; prints the archive
"""

import json
import re
import sys
from pathlib import Path

# The one thing that a test may leave out, if it says so: instructions the machine does not have.
LEFT_OUT = re.compile(r"NOT TESTED: (.*)")
ALLOWED = re.compile(r"kernel level \w+ is not on this machine")


FOLDERS = [Path(crate, folder) for crate in ("engine", "harness") for folder in ("src", "tests")]


def written_tests(folders):
    """How many tests the sources in some folders hold."""
    files = [path for folder in folders for path in folder.rglob("*.rs")]
    return sum(len(re.findall(r"^\s*#\[test\]", path.read_text(), re.M)) for path in files)


def check_tests(text):
    """Gives what is wrong, a line each."""
    wrong = []
    totals = dict.fromkeys(("passed", "failed", "ignored", "filtered out"), 0)
    results = re.findall(r"^test result: .*$", text, re.M)
    for line in results:
        for name in totals:
            totals[name] += int(re.search(rf"(\d+) {name}", line)[1])
    documented = sum(
        int(n) for n in re.findall(r"Doc-tests .*?\n\nrunning (\d+) tests?\n", text, re.S)
    )
    written = written_tests(FOLDERS)
    ran = totals["passed"] - documented
    if written == 0 or ran < written:
        wrong.append(f"the sources hold {written} tests and {ran} passed")
    for name in ("failed", "ignored", "filtered out"):
        if totals[name]:
            wrong.append(f"{totals[name]} tests {name}")
    for what in LEFT_OUT.findall(text):
        print(f"not tested: {what}")
        if not ALLOWED.fullmatch(what):
            wrong.append(f"left out: {what}")
    print(f"{ran} of {written} tests passed, {documented} examples in {len(results)} programs")
    return wrong


def check_arm(text):
    """Gives what is wrong, a line each."""
    wrong = []
    written = written_tests([Path("engine", "src", "kernels")])
    ran = len(re.findall(r"^test kernels::\S+ \.\.\. ok$", text, re.M))
    if written == 0 or ran != written:
        wrong.append(f"the kernels' sources hold {written} tests and {ran} passed for Arm")
    if not re.search(r"^test result: ok\. \d+ passed; 0 failed; 0 ignored;", text, re.M):
        wrong.append("the tests for Arm did not pass")
    if "kernel level neon: bits compared with the scalar twins" not in text:
        wrong.append("level neon was not among those compared")
    wrong += [f"left out: {what}" for what in LEFT_OUT.findall(text)]
    print(f"{ran} of {written} of the kernels' tests passed for 64-bit Arm")
    return wrong


def check_avx512(text, asked):
    """Gives what is wrong, a line each."""
    wrong = []
    passed = re.findall(r"^test (kernels::\S+) \.\.\. ok$", text, re.M)
    wrong += [f"{name} did not pass at level avx512" for name in asked if name not in passed]
    results = re.findall(r"^test result: (.*)$", text, re.M)
    ended = text.count("the tests ended: exit status: 0\n")
    if not results or ended != len(results):
        wrong.append(f"of {len(results)} emulated machines {ended} ended well")
    if "kernel level avx512: bits compared with the scalar twins" not in text:
        wrong.append("level avx512 was not compared: does the emulated processor lack it?")
    if re.search(r"kernel level (?!avx512)\w+: bits compared", text):
        wrong.append("the tests ran at more levels than avx512")
    print(f"{len(passed)} of the kernels' tests passed at level avx512")
    return wrong


def check_demo(facts):
    """Gives what is wrong, a line each."""
    wrong = []
    if facts["audit_passed"] is not True:
        wrong.append("the demo's own audit did not pass")
    if facts["exit"] != 0:
        wrong.append(f"the demo ended with {facts['exit']}: {facts['reason']}")
    if not facts["verdict"]["sentence"]:
        wrong.append("no verdict")
    report, chart = (Path(facts[name]).read_text() for name in ("report", "chart"))
    # A frame alone is no chart. Each session of the first arm is drawn as a circle of radius 7, and
    # a mirrored quartet has two.
    for name, text in (("report", report), ("chart", chart)):
        if "<svg" not in text or len(re.findall(r'<circle\b[^>]*\br="7"', text)) < 2:
            wrong.append(f"the {name} at {facts[name]} shows no chart of the sessions")
    return wrong


def main():
    what, path, *names = sys.argv[1:]
    text = Path(path).read_text()
    if what == "tests":
        wrong = check_tests(text)
    elif what == "arm":
        wrong = check_arm(text)
    elif what == "avx512":
        wrong = check_avx512(text, names)
    else:
        facts = json.loads(text)
        wrong = check_demo(facts)
        print(facts["archive"])
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
