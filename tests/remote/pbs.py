"""Plays a scheduler like PBS: a server that runs arrays of jobs, and the commands that talk to it by files.

    pbs.py serve SPOOL SLOTS
    pbs.py submit SPOOL SCRIPT OUTPUT JOBS AT_ONCE MEMORY_MB [NAME]
    pbs.py poll SPOOL ID...
    pbs.py cancel SPOOL ID
    pbs.py find SPOOL NAME

A program of a job can ask for a fault: it writes its process id to SPOOL/fault/NAME, where NAME is a state in which the job ends
(`memory`, `timeout`, `node`, `preempted`), `lost` (it ends, and the scheduler forgets it), or `twice` (the job starts again while
its first process goes on).
"""
import json, os, signal, subprocess, sys, time


def parent_and_session(pid):
    try:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        return int(fields[1]), int(fields[3])
    except (OSError, IndexError):
        return 0, 0


def end_session(session):
    for name in os.listdir("/proc"):
        if name.isdigit() and parent_and_session(int(name))[1] == session:
            try:
                os.kill(int(name), signal.SIGKILL)
            except OSError:
                pass


class Server:
    def __init__(self, spool, slots):
        self.spool, self.slots = spool, slots
        self.jobs, self.running, self.strays = {}, {}, []

    def save(self):
        states = [[job, index, *state] for (job, index), state in sorted(self.jobs.items())]
        with open(f"{self.spool}/.states", "w") as file:
            json.dump(states, file)
        os.rename(f"{self.spool}/.states", f"{self.spool}/states")

    def start(self, key, array):
        try:
            output = open(f"{array['output']}/{key[1]}.txt", "a")
        except OSError:
            self.jobs[key] = ("failed", "no folder")
            return
        environment = {**os.environ, "PBS_ARRAY_INDEX": str(key[1])}
        self.running[key] = subprocess.Popen(
            ["bash", array["script"]], env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=output, start_new_session=True)
        self.jobs[key] = ("running", f"node{key[1] % 3}")

    def end(self, key, state):
        process = self.running.pop(key)
        end_session(process.pid)
        process.wait()
        if state == "lost":
            del self.jobs[key]
        else:
            self.jobs[key] = (state, "")

    def faults(self):
        for name in os.listdir(f"{self.spool}/fault"):
            path = f"{self.spool}/fault/{name}"
            text = open(path).read()
            if not text.endswith("\n"):
                continue
            os.remove(path)
            for key, process in list(self.running.items()):
                if parent_and_session(int(text))[1] != process.pid:
                    continue
                if name == "twice":
                    self.strays.append(self.running.pop(key))
                    self.jobs[key] = ("queued", "requeued")
                else:
                    self.end(key, name)

    def step(self, arrays):
        for name in os.listdir(f"{self.spool}/submit"):
            if name.startswith("."):
                continue
            array = json.load(open(f"{self.spool}/submit/{name}"))
            os.remove(f"{self.spool}/submit/{name}")
            arrays[name] = array
            for index in range(array["jobs"]):
                self.jobs[(name, index)] = ("queued", "slots")
        for name in os.listdir(f"{self.spool}/cancel"):
            os.remove(f"{self.spool}/cancel/{name}")
            for key in [key for key in self.jobs if key[0] == name]:
                if key in self.running:
                    self.end(key, "cancelled")
                elif self.jobs[key][0] == "queued":
                    self.jobs[key] = ("cancelled", "")
        self.faults()
        for key, process in list(self.running.items()):
            if process.poll() is not None:
                code = self.running.pop(key).returncode
                self.jobs[key] = ("done" if code == 0 else "failed", "")
        self.strays = [stray for stray in self.strays if stray.poll() is None]
        for key, (state, _) in sorted(self.jobs.items()):
            at_once = sum(running[0] == key[0] for running in self.running)
            if state == "queued" and len(self.running) < self.slots and at_once < arrays[key[0]]["at_once"]:
                self.start(key, arrays[key[0]])
        self.save()

    def serve(self):
        arrays = {}
        while True:
            self.step(arrays)
            time.sleep(0.02)


def main(command, spool, *words):
    if command == "serve":
        for folder in ["submit", "cancel", "fault"]:
            os.makedirs(f"{spool}/{folder}", exist_ok=True)
        print("ready", flush=True)
        Server(spool, int(words[0])).serve()
    elif command == "submit":
        script, output, jobs, at_once, memory, *named = words
        number = len(open(f"{spool}/submissions").readlines()) if os.path.exists(f"{spool}/submissions") else 0
        with open(f"{spool}/submissions", "a") as file:
            file.write(f"{jobs} {at_once} {memory}\n")
        name = f"{number}.pbs"
        with open(f"{spool}/names", "a") as file:
            file.writelines(f"{given} {name}\n" for given in named)
        array = {"script": script, "output": output, "jobs": int(jobs), "at_once": int(at_once)}
        with open(f"{spool}/submit/.{name}", "w") as file:
            json.dump(array, file)
        os.rename(f"{spool}/submit/.{name}", f"{spool}/submit/{name}")
        while not any(state[0] == name for state in json.load(open(f"{spool}/states"))):
            time.sleep(0.01)
        print(f"submitted\n{name}")
    elif command == "poll":
        for job, index, state, more in json.load(open(f"{spool}/states")):
            if job in words:
                print(job, index, state, more)
    elif command == "find":
        for line in open(f"{spool}/names") if os.path.exists(f"{spool}/names") else []:
            if line.split()[0] == words[0]:
                print(line.split()[1])
    elif command == "cancel":
        open(f"{spool}/cancel/{words[0]}", "w").close()


main(*sys.argv[1:])
