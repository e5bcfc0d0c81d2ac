"""Walks the Inspector's command line through the steps that ../run lists: walk.py URL legacy|auto|modern

Each call is a connection of its own.
"""

import json
import pathlib
import signal
import subprocess
import sys
import time

MODULES = pathlib.Path(__file__).resolve().parent / "node_modules"
INSPECTOR = [MODULES / ".bin/node", MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js", "--cli"]

# Time enough for Node to start and a call to reach its handler.
UNDER_WAY = 4


class Inspector:
    def __init__(self, url, era):
        self.command = [*INSPECTOR, url, "--protocol-era", era]

    def start(self, method, *arguments):
        return subprocess.Popen([*self.command, "--method", method, *arguments], stdout=subprocess.PIPE, text=True)

    def start_call(self, tool, **arguments):
        return self.start("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))

    def call(self, tool, **arguments):
        return text(answer(self.start_call(tool, **arguments)))


def answer(process):
    output, _ = process.communicate(timeout=30)
    expect("exit status", process.returncode, 0)
    return json.loads(output)


def text(result):
    return result["content"][0]["text"]


def connect(inspector):
    # Only modern results carry the server's name.
    result = answer(inspector.start_call("echo", text="hello"))
    return "modern" if "_meta" in result else "legacy"


def list_tools(inspector):
    tools = answer(inspector.start("tools/list"))["tools"]
    expect("the tools", [tool["name"] for tool in tools], ["echo", "count", "sleep", "cancellations"])


def echo(inspector):
    said = 'Grüße, "world"\n'
    expect("the echo", inspector.call("echo", text=said), said)


def count(inspector):
    expect("the answer", inspector.call("count", to=5, interval_ms=20), "counted to 5")


def second(inspector):
    both = [inspector.start_call("echo", text=said) for said in ["one", "another"]]
    expect("the echoes", [text(answer(process)) for process in both], ["one", "another"])


def hang_up(inspector):
    before = inspector.call("cancellations")
    sleeping = inspector.start_call("sleep", ms=60_000)
    time.sleep(UNDER_WAY)
    sleeping.send_signal(signal.SIGINT)
    output, _ = sleeping.communicate(timeout=30)
    expect("output", output, "")
    # One look takes a second: no need to look often.
    if before == inspector.call("cancellations") == inspector.call("cancellations"):
        raise AssertionError("the handler is still running")


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
    print("cancel skipped its command line cannot cancel a call")
    step("second", second, inspector)
    step("hang-up", hang_up, inspector)
    # Each call above has closed its connection, with exit status 0.
    step("close", lambda _: None, inspector)


if __name__ == "__main__":
    main(*sys.argv[1:])
