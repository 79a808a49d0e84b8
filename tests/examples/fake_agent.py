"""An agent's command line, for tests: reads a prompt, answers it, and prints the answer in the envelope that is asked for.

    fake_agent.py ENVELOPE FOLDER [HOW]

ENVELOPE: text, json (as Claude Code and Cursor print it), ndjson (as OpenCode does).
FOLDER: gets one file for each call, so that calls can be counted.
HOW: what goes wrong: no-yaml, no-score, wrong-score, no-json, lacks-fields, exit, login, sleep, cut, flaky (every fourth result says nothing), meet (a judge
answers when its group of five was called), late (the second result comes after the first judge was called).
"""

import json
import os
import re
import sys
import time

envelope, folder, how = sys.argv[1], sys.argv[2], (sys.argv[3:] + [""])[0]
prompt = sys.stdin.read()


def between(tag):
    return re.search(rf"<{tag}>\n(.*?)\n</{tag}>", prompt, re.S).group(1)


def extraction():
    if how == "no-json":
        return "I found a prompt and some assertions."
    test = between("test-file")
    block = re.search(r'"""(.*?)"""', test, re.S)
    found = {"userPrompt": block.group(1).strip(), "importPaths": re.findall(r'^import "(.+)"', test, re.M)}
    if how != "lacks-fields":
        found["assertions"] = re.findall(r"^- (Given .+)$", test, re.M)
    return "```json\n" + json.dumps(found) + "\n```"


def judgment():
    result = between("result")
    passed = "Ana" in result
    if how == "no-yaml":
        return "It looks right to me."
    lines = [f"passed: {str(passed).lower()}", f"actual: begins with: {result.splitlines()[0][:20]}", "expected: Ana is named"]
    if how == "wrong-score":
        lines.append("score: 250")
    elif how != "no-score":
        lines.append(f"score: {90 if passed else 10}")
    return "My judgment:\n---\n" + "\n".join(lines) + "\n---\n"


def claim(kind):
    """The number of this call among those of its kind; the file that claims it is made by one call only."""
    number = 1
    while True:
        try:
            os.close(os.open(f"{folder}/{kind}_{number}", os.O_CREAT | os.O_EXCL))
            return number
        except FileExistsError:
            number += 1


def until_called(name):
    for _ in range(6000):
        if os.path.exists(f"{folder}/{name}"):
            return
        time.sleep(0.005)
    sys.exit(f"{name} was not called")


kind = "extract" if "<test-file>" in prompt else "judge" if "<requirement" in prompt or "Requirement:" in prompt else "result"
number = claim(kind)
if how == "exit":
    sys.exit("the model is not there")
if how == "login":
    sys.exit("Not logged in. Please run /login")
if how == "sleep":
    time.sleep(600)
if how == "meet" and kind == "judge":
    until_called(f"judge_{(number + 4) // 5 * 5}")
if how == "late" and kind == "result" and number == 2:
    until_called("judge_1")
if kind == "extract":
    answer = extraction()
elif kind == "judge":
    answer = judgment()
elif how == "flaky" and number % 4 == 0:
    answer = "Nothing."
else:
    answer = "- Ana: send the test protocol\n- Boris: order the hinges"

if envelope == "text":
    sys.stdout.write(answer)
elif envelope == "json":
    whole = {"type": "result", "subtype": "success", "is_error": False, "result": answer, "session_id": "s", "total_cost_usd": 0.001}
    sys.stdout.write(json.dumps(whole)[: 20 if how == "cut" else None])
else:
    part = lambda kind, **more: print(json.dumps({"type": kind, "sessionID": "s", "part": {"type": kind.replace("_", "-"), **more}}))
    part("step_start")
    part("text", text=answer)
    part("step_finish", reason="stop", cost=0.001, tokens={"input": 10, "output": 5, "reasoning": 0, "cache": {"read": 0, "write": 0}})
