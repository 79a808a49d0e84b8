"""A model that answers questions, on standard input or over HTTP in both providers' forms.

model.py ANSWERING            answers the prompt on standard input
model.py ANSWERING serve      prints its port, and serves until its standard input ends

ANSWERING is `well`, or `badly:SEED`: answers are dropped, doubled, invented, wrong, out of order, prose, fenced or cut; the same
for the same seed and the same sequence of calls. With `without:FILE` the names in that file are not answered, and with `leaky:KEY`
nothing is: the key is told instead.
"""

import http.server
import json
import os
import random
import sys
import threading

HOW, _, SEED = sys.argv[1].partition(":")
CHANCE = random.Random(SEED)


def answer(text):
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


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, value):
        body = json.dumps(value).encode()
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
        if self.is_known():
            self.say(200, {"data": []})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.is_known():
            return
        text = text_of(asked.get("system")) + "".join(text_of(it["content"]) for it in asked["messages"])
        said = answer(text)
        used = len(text) // 4
        if "/messages" in self.path:
            self.say(200, {
                "id": "msg", "type": "message", "role": "assistant", "model": asked["model"] + "-served",
                "content": [{"type": "text", "text": said}], "stop_reason": "end_turn",
                "usage": {"input_tokens": used, "cache_read_input_tokens": 5, "output_tokens": 20},
            })
        else:
            self.say(200, {
                "id": "chat", "model": asked["model"] + "-served",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}],
                "usage": {"prompt_tokens": used, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 5}},
            })


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
