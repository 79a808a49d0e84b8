"""A model that answers questions, on standard input or over HTTP in both providers' forms, by itself or in batches.

model.py ANSWERING            answers the prompt on standard input
model.py ANSWERING serve      prints its port, and serves until its standard input ends

ANSWERING is `well`, or `badly:SEED`: answers are dropped, doubled, invented, wrong, out of order, prose, fenced or cut; the same
for the same seed and the same sequence of calls. With `without:FILE` the names in that file are not answered, and with `leaky:KEY`
nothing is: the key is told instead. With `elements` building elements are told to be something else, because of their question.

A batch ends at its second poll. `GET /control/set?KEY=VALUE&…` sets how batches go, and `GET /control/log` says what came:
hold=1       no batch ends
mute=1       a batch is made, and whoever submitted it hears nothing
deaf=1       no batch is made, and whoever submits it hears nothing
busy=N       the next N are refused by 529
ill=A,B,…    what becomes of the first requests of the next batch: well, expired, errored, wrong
usage=JSON   every answer reports this usage
gate=PATH    a direct request reports to the pipe PATH.started, and waits for the pipe PATH.release
watch=PATH   at the first poll of a batch its id must be in a file below
"""

import datetime
import http.server
import json
import os
import random
import sys
import threading
import time
import urllib.parse

HOW, _, SEED = sys.argv[1].partition(":")
CHANCE = random.Random(SEED)


def of_elements(text):
    begin = text.rindex("## Questions")
    questions = json.JSONDecoder().raw_decode(text[text.index('[{"id"', begin):])[0]
    said = {"element_type": "other", "material_primary": None, "confidence": 0.3}
    return json.dumps([{"id": it["id"], **said, "reasoning": json.dumps(it["question"])} for it in questions])


def answer(text):
    if HOW == "elements":
        return of_elements(text)
    if "Questions:" not in text:
        said = text.strip().splitlines()[-1]
        if said.startswith("Judge "):
            return "Well.\n---\nscore: 90\nactual: %s\n...\n" % said.split()[1]
        return json.dumps({"said": said, "length": len(said)})
    begin = text.rindex("Questions:")
    questions = json.JSONDecoder().raw_decode(text[text.index("[", begin):])[0]
    answers = [{"id": it["id"], "word": it["question"]["name"].upper()} for it in questions]
    if HOW == "without":
        with open(SEED) as left_out:
            names = left_out.read().upper().splitlines()
        return json.dumps([it for it in answers if it["word"] not in names])
    if HOW == "badly" and answers:
        ill = CHANCE.randrange(9)
        if ill == 0:
            answers.pop(CHANCE.randrange(len(answers)))
        elif ill == 1:
            answers.append({**answers[0], "word": "OTHER"})
        elif ill == 2:
            answers.append({"id": "q999", "word": "X"})
        elif ill == 3:
            answers[0] = {"id": answers[0]["id"], "word": 7}
        elif ill == 4:
            CHANCE.shuffle(answers)
        elif ill == 5:
            return "I would rather not."
        elif ill == 6:
            return "Sure:\n```json\n%s\n```\nDone!" % json.dumps(answers)
        elif ill == 7:
            whole = json.dumps(answers)
            return whole[: len(whole) * 2 // 3]
    return json.dumps(answers)


def text_of(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


def reported(usage):
    return json.loads(BATCHES.set["usage"]) if "usage" in BATCHES.set else usage


def message(asked):
    text = text_of(asked.get("system")) + "".join(text_of(it["content"]) for it in asked["messages"])
    usage = {"input_tokens": len(text) // 4, "cache_read_input_tokens": 5, "output_tokens": 20}
    return {
        "id": "msg", "type": "message", "role": "assistant", "model": asked["model"] + "-served",
        "content": [{"type": "text", "text": answer(text)}], "stop_reason": "end_turn",
        "usage": reported(usage),
    }


def completion(asked):
    text = "".join(text_of(it["content"]) for it in asked["messages"])
    said = {"role": "assistant", "content": answer(text)}
    usage = {"prompt_tokens": len(text) // 4, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 5}}
    return {
        "id": "chat", "model": asked["model"] + "-served",
        "choices": [{"index": 0, "finish_reason": "stop", "message": said}],
        "usage": reported(usage),
    }


class Batches:
    """The batches of both providers."""

    def __init__(self):
        self.all, self.files, self.set, self.direct, self.unheard = [], {}, {}, 0, 0
        self.lock = threading.Lock()

    def make(self, requests):
        ill = [it for it in self.set.pop("ill", "").split(",") if it]
        batch = {"id": "batch_%d" % (len(self.all) + 1), "requests": requests, "created": time.time(), "polls": 0,
                 "ill": ill + ["well"] * (len(requests) - len(ill)), "on_disk": None}
        self.all.append(batch)
        return batch

    def find(self, id):
        return next((it for it in self.all if it["id"] == id), None)

    def poll(self, batch):
        if batch["polls"] == 0 and "watch" in self.set:
            batch["on_disk"] = any(
                batch["id"].encode() in open(os.path.join(folder, name), "rb").read()
                for folder, _, names in os.walk(self.set["watch"]) for name in names)
        batch["polls"] += 1

    def has_ended(self, batch):
        return batch["polls"] > 1 and self.set.get("hold") != "1"

    def log(self):
        batches = [{"id": it["id"], "polls": it["polls"], "on_disk": it["on_disk"],
                    "requests": [id for id, _ in it["requests"]], "asked": [body for _, body in it["requests"]]}
                   for it in self.all]
        return {"batches": batches, "direct": self.direct, "unheard": self.unheard}

    def of_anthropic(self, batch):
        ended, count = self.has_ended(batch), len(batch["requests"])
        many = {"succeeded": 0, "errored": 0, "canceled": 0, "expired": 0, "processing": 0}
        many["succeeded" if ended else "processing"] = count
        created = datetime.datetime.fromtimestamp(batch["created"], datetime.timezone.utc).isoformat()
        return {"id": batch["id"], "type": "message_batch", "created_at": created, "request_counts": many,
                "processing_status": "ended" if ended else "in_progress"}

    def of_openai(self, batch):
        ended = self.has_ended(batch)
        return {"id": batch["id"], "object": "batch", "created_at": int(batch["created"]),
                "status": "completed" if ended else "in_progress", "output_file_id": "out_" + batch["id"] if ended else None,
                "error_file_id": None, "request_counts": {"total": len(batch["requests"]), "completed": 0, "failed": 0}}

    def lines_of_anthropic(self, batch):
        for (id, asked), how in reversed(list(zip(batch["requests"], batch["ill"]))):
            error = {"type": "api_error" if how == "errored" else "invalid_request_error", "message": "it is ill"}
            yield {"custom_id": id, "result": {
                "well": lambda: {"type": "succeeded", "message": message(asked)},
                "expired": lambda: {"type": "expired"},
            }.get(how, lambda: {"type": "errored", "error": {"type": "error", "error": error}})()}

    def lines_of_openai(self, batch):
        for (id, asked), how in reversed(list(zip(batch["requests"], batch["ill"]))):
            response, error = None, None
            if how == "well":
                response = {"status_code": 200, "request_id": "r", "body": completion(asked)}
            elif how == "expired":
                error = {"code": "batch_expired", "message": "late"}
            else:
                response = {"status_code": 500 if how == "errored" else 400, "body": {"error": {"message": "it is ill"}}}
            yield {"id": "x", "custom_id": id, "response": response, "error": error}


BATCHES = Batches()


def lines(values):
    return "".join(json.dumps(it) + "\n" for it in values)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, value):
        body = (value if isinstance(value, str) else json.dumps(value)).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def is_known(self):
        key = self.headers.get("x-api-key") or (self.headers.get("authorization") or "").removeprefix("Bearer ")
        if HOW == "leaky":
            self.say(400, {"error": {"type": "invalid_request_error", "message": "I was sent %s by you" % key}})
            return False
        if key != "right":
            self.say(401, {"error": {"type": "authentication_error", "message": "invalid x-api-key"}})
        return key == "right"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        with BATCHES.lock:
            if path == "/control/set":
                BATCHES.set.update(urllib.parse.parse_qsl(query))
                return self.say(200, {})
            if path == "/control/log":
                return self.say(200, BATCHES.log())
            if not self.is_known():
                return
            _, _, rest = path.partition("/batches")
            id, _, more = rest.lstrip("/").partition("/")
            form = BATCHES.of_anthropic if "/messages/" in path else BATCHES.of_openai
            if path.endswith("/batches"):
                self.say(200, {"data": [form(it) for it in reversed(BATCHES.all)]})
            elif "/files/" in path:
                id = path.split("/")[-2].removeprefix("out_")
                self.say(200, lines(BATCHES.lines_of_openai(BATCHES.find(id))))
            elif "/batches/" not in path:
                self.say(200, {"data": []})
            elif (batch := BATCHES.find(id)) is None:
                self.say(404, {"error": {"type": "not_found_error", "message": "there is no such batch"}})
            elif more == "results":
                self.say(200, lines(BATCHES.lines_of_anthropic(batch)))
            else:
                BATCHES.poll(batch)
                self.say(200, form(batch))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if not self.is_known():
            return
        with BATCHES.lock:
            if self.path.endswith("/files"):
                id = "file_%d" % (len(BATCHES.files) + 1)
                part = body.split(b"application/jsonl\r\n\r\n")[1]
                text = part[: part.rindex(b"\r\n--milepost-")].decode()
                BATCHES.files[id] = [json.loads(line) for line in text.splitlines()]
                return self.say(200, {"id": id})
            asked = json.loads(body)
            if self.path.endswith("/batches"):
                return self.batch(asked)
            BATCHES.direct += 1
            self.pass_gate(BATCHES.set.get("gate"))
            self.say(200, message(asked) if "/messages" in self.path else completion(asked))

    def pass_gate(self, gate):
        if gate:
            with open(gate + ".started", "w") as started:
                started.write("on\n")
            with open(gate + ".release") as release:
                release.read()

    def batch(self, asked):
        busy = int(BATCHES.set.get("busy", "0"))
        if busy:
            BATCHES.set["busy"] = str(busy - 1)
            self.say(529, {"error": {"type": "overloaded_error", "message": "busy"}})
        elif BATCHES.set.get("deaf") == "1":
            BATCHES.unheard += 1
            self.hang()
        elif "/messages/" in self.path:
            self.made(BATCHES.make([(it["custom_id"], it["params"]) for it in asked["requests"]]), BATCHES.of_anthropic)
        else:
            requests = [(it["custom_id"], it["body"]) for it in BATCHES.files[asked["input_file_id"]]]
            self.made(BATCHES.make(requests), BATCHES.of_openai)

    def made(self, batch, form):
        if BATCHES.set.get("mute") == "1":
            self.hang()
        else:
            self.say(200, form(batch))

    def hang(self):
        """Says nothing until the client goes."""
        BATCHES.lock.release()
        try:
            self.connection.recv(1)
        except OSError:
            pass
        finally:
            BATCHES.lock.acquire()
        self.close_connection = True


if sys.argv[2:] == ["serve"]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)
if HOW == "leaky":
    print("I was sent %s, and sk-ant-api03-0123456789abcdef" % SEED)
    sys.exit("I was sent %s, and sk-ant-api03-0123456789abcdef" % SEED)
print(answer(sys.stdin.read()))
