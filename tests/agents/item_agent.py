"""An agent's command line, for tests of steps with `each`.

    item_agent.py FOLDER

FOLDER gets a file for each call, named by item and number, such as `b_1`. The prompt has lines `item: NAME` and `how: WORDS`:

    well         answers
    meet N       answers when N calls are open
    alone        ends with an error if another call is open
    wrong        its answer lacks a key
    wrong once   the same, in the first call only
    exit         ends with an error
    wait FILE    answers when this file is in the folder
    guards FILE  starts a process in a session of its own, writes this file, and answers when an answer to another call is kept and
                 the process still runs
"""

import json
import os
import re
import subprocess
import sys
import time

folder = sys.argv[1]
prompt = sys.stdin.read()
name = re.search(r"^item: (.*)$", prompt, re.M).group(1)
how = re.search(r"^how: (.*)$", prompt, re.M).group(1).split()


def claim():
    number = 1
    while True:
        try:
            os.close(os.open(f"{folder}/{name}_{number}", os.O_CREAT | os.O_EXCL))
            return number
        except FileExistsError:
            number += 1


def until(holds):
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.005)
    sys.exit("it did not come")


def opened():
    return len([file for file in os.listdir(folder) if file.startswith("open-")])


number = claim()
mark = f"{folder}/open-{os.getpid()}"
open(mark, "w").close()
met = f"{folder}/met"
if how[0] == "meet":
    until(lambda: os.path.exists(met) or opened() >= int(how[1]))
    open(met, "w").close()
elif how[0] == "alone" and opened() > 1:
    sys.exit("another call is open")
elif how[0] == "guards":
    start = "setsid sleep 600 > /dev/null 2>&1 < /dev/null & echo $!"
    child = int(subprocess.run(["sh", "-c", start], stdout=subprocess.PIPE, check=True).stdout)
    open(f"{folder}/{how[1]}", "w").close()
    answers = f"{folder}/../workspace/.milepost/answers"
    until(lambda: any(os.path.getsize(f"{at}/{file}") for at, _, files in os.walk(answers) for file in files))
    runs = os.path.exists(f"/proc/{child}") and open(f"/proc/{child}/stat").read().split()[2] != "Z"
    if not runs:
        sys.exit("the process was ended")
    os.kill(child, 9)
elif how[0] == "wait":
    until(lambda: os.path.exists(f"{folder}/{how[1]}"))
os.remove(mark)
if how[0] == "exit":
    sys.exit("the model is not there")
is_wrong = how == ["wrong"] or how == ["wrong", "once"] and number == 1
print(json.dumps({"said": name.upper()} if not is_wrong else {"other": name}))
