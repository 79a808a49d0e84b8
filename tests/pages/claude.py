# In the place of the coding agent's program: `claude mcp add NAME -- COMMAND` and `claude -p PROMPT`.
import json
import subprocess
import sys


class Client:
    def __init__(self, command):
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0
        hello = self.ask(
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claude", "version": "1"}},
        )
        assert hello["serverInfo"]["name"] == "milepost", hello
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.server.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            reply = json.loads(self.server.stdout.readline())
            if reply.get("id") == self.number:
                return reply["result"]

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]

    def close(self):
        self.server.stdin.close()
        self.server.wait()


if sys.argv[1:3] == ["mcp", "add"]:
    Client(sys.argv[sys.argv.index("--") + 1 :]).close()
else:
    declared = json.load(open(".mcp.json"))["mcpServers"]["milepost"]
    client = Client([declared["command"], *declared["args"]])
    while True:
        lease = client.call("next_batch").get("leased")
        if lease is None:
            break
        stars = 2 if "sticks" in open(lease["prompt_file"]).read() else 5
        done = client.call("submit_batch", lease=lease["lease"], answer={"stars": stars})
        assert done["success"], done
    client.close()
