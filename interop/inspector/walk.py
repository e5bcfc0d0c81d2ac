"""Walks the Inspector's command lines through the steps that ../run lists: walk.py URL legacy|auto|modern

Each call is a connection of its own, but for the step that listens.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

MODULES = pathlib.Path(__file__).resolve().parent / "node_modules"
CLIENTS = MODULES / "@modelcontextprotocol/inspector/clients"
INSPECTOR = [MODULES / ".bin/node", CLIENTS / "launcher/build/index.js", "--cli"]
# Keeps a connection open from one command to the next.
MCPDO = [MODULES / ".bin/node", CLIENTS / "mcpdo/build/mcp-bin.js", "--connection", "walk", "--format", "json"]
# With any other store of secrets it warns. There are none to keep.
MCPDO_ENVIRONMENT = {**os.environ, "MCP_INSPECTOR_SECRET_STORE": "file", "MCP_INSPECTOR_SECRET_KEY": "0" * 64}

RESOURCE = "interop://resource"
TOOLS = ["echo", "count", "poll", "break", "sleep", "cancelled", "finished", "change"]

# Time enough for what must come.
PATIENCE = 30


class Inspector:
    def __init__(self, url, era):
        self.command = [*INSPECTOR, url, "--protocol-era", era]
        self.url, self.era, self.is_modern = url, era, False

    def start(self, method, *arguments):
        return start([*self.command, "--method", method, *arguments])

    def start_call(self, tool, **arguments):
        return self.start("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))

    def call(self, tool, **arguments):
        return text(answer(self.start_call(tool, **arguments)))

    def wait_for(self, what, number):
        """Waits until that many are open on the server."""
        deadline = time.monotonic() + PATIENCE
        while (open_ := state(self.url)["open"])[what] != number:
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: {open_}")
            time.sleep(0.05)


def start(command):
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def state(url):
    with urllib.request.urlopen(url.removesuffix("mcp") + "state") as response:
        return json.load(response)


def interrupt(process):
    """Stops a call as Ctrl-C does, and returns what it has said."""
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=PATIENCE)[0]


def answer(process):
    output, _ = process.communicate(timeout=PATIENCE)
    expect("exit status", process.returncode, 0)
    return json.loads(output)


def text(result):
    return result["content"][0]["text"]


def connect(inspector):
    # Only modern results carry the server's name.
    result = answer(inspector.start_call("echo", text="hello"))
    inspector.is_modern = "_meta" in result
    # Nor does it say what it negotiated.
    return "2026-07-28" if inspector.is_modern else "2025-11-25"


def list_tools(inspector):
    tools = answer(inspector.start("tools/list"))["tools"]
    expect("the tools", [tool["name"] for tool in tools], TOOLS)


def echo(inspector):
    said = 'Grüße, "world"\n'
    expect("the echo", inspector.call("echo", text=said), said)


def count(inspector):
    expect("the answer", inspector.call("count", to=5, interval_ms=20), "counted to 5")


def resume(inspector):
    for tool, text in [("poll", "polled to 4"), ("break", "broke off before 4")]:
        expect("the answer", inspector.call(tool, to=4, interval_ms=200), text)


def second(inspector):
    both = [inspector.start_call("echo", text=said) for said in ["one", "another"]]
    expect("the echoes", [text(answer(process)) for process in both], ["one", "another"])


def changes(inspector):
    """Of all changes, mcpdo prints those of resources."""
    expect("connected", answer(mcpdo("connect", inspector.url, "--era", inspector.era))["name"], "walk")
    try:
        listening = mcpdo("resources/subscribe", RESOURCE)
        expect("what is subscribed to", next_object(listening), {"type": "subscribed", "uri": RESOURCE})
        expect("the answer", text(answer(mcpdo("tools/call", "change"))), "changed")
        expect("what is heard", next_object(listening), {"type": "resources/updated", "uri": RESOURCE})
        expect("what follows", interrupt(listening), "")
        answer(mcpdo("disconnect"))
    finally:
        mcpdo("daemon", "stop").communicate(timeout=PATIENCE)


def mcpdo(*arguments):
    return subprocess.Popen([*MCPDO, *arguments], stdout=subprocess.PIPE, text=True, env=MCPDO_ENVIRONMENT)


def next_object(process):
    """Reads a JSON object that is laid out in lines."""
    lines = []
    while not lines or lines[-1] not in ("}\n", ""):
        lines.append(process.stdout.readline())
    return json.loads("".join(lines))


def hang_up(inspector):
    """A call stops with its client, unless it belongs to a session."""
    ms, counted = (60_000, "cancelled") if inspector.is_modern else (8_000, "finished")
    before = int(inspector.call(counted))
    sleeping = inspector.start_call("sleep", ms=ms)
    inspector.wait_for("requests", 1)
    expect("output", interrupt(sleeping), "")
    inspector.wait_for("requests", 0)
    expect(counted, int(inspector.call(counted)), before + 1)


def expect(what, found, expected):
    if found != expected:
        raise AssertionError(f"{what}: {found!r}")


def step(name, work, inspector):
    """Prints how a step went."""
    try:
        print(name, "ok", work(inspector) or "", flush=True)
    except Exception as error:
        print(name, "failed", repr(error).replace("\n", " "), flush=True)


def main(url, era):
    inspector = Inspector(url, era)
    step("connect", connect, inspector)
    step("list", list_tools, inspector)
    step("echo", echo, inspector)
    step("count", count, inspector)
    if inspector.is_modern:
        print("resume skipped that revision has no way back", flush=True)
    else:
        step("resume", resume, inspector)
    if inspector.is_modern:
        # To stop a call is to stop its command, which closes the connection.
        step("cancel", hang_up, inspector)
    else:
        print("cancel skipped its command lines end without a word to the server: a call in a session goes on", flush=True)
    step("changes", changes, inspector)
    step("second", second, inspector)
    step("hang-up", hang_up, inspector)
    # Each call above has closed its connection, with exit status 0.
    step("close", lambda _: None, inspector)


if __name__ == "__main__":
    main(*sys.argv[1:])
