"""Takes the Inspector's command line through everything, as far as it goes: tour.py URL|COMMAND legacy|auto|modern

Each call is a connection of its own.
"""

import json
import sys

from walk import INSPECTOR, answer, expect, start, step, text

# What its command line cannot do.
SKIPPED = {
    "reports": "it prints the answer alone",
    "questions": "it has no user and no model to ask",
    "rounds": "it has no user and no model to ask",
    "cancel": "to stop a call is to stop its command, which ./run does",
}


class Inspector:
    def __init__(self, server, era):
        target = [server] if server.startswith("http") else [server, "--stdio"]
        self.command = [*INSPECTOR, *target, "--protocol-era", era]

    def ask(self, method, *arguments):
        return answer(start([*self.command, "--method", method, *arguments]))

    def call(self, tool, **arguments):
        return self.ask("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))


def connect(inspector):
    # Only modern results carry the server's name. It does not say what it negotiated.
    return "2026-07-28" if "_meta" in inspector.call("test_simple_text") else "2025-11-25"


def tools(inspector):
    expect("the first tool", inspector.ask("tools/list")["tools"][0]["name"], "test_simple_text")
    kinds = [block["type"] for block in inspector.call("test_multiple_content_types")["content"]]
    expect("the kinds", kinds, ["text", "image", "resource"])
    expect("the sound", inspector.call("test_audio_content")["content"][0]["mimeType"], "audio/wav")
    expect("the mirrored argument", "Grüße" in text(inspector.call("test_custom_header", value="Grüße")), True)
    expect("the greeting", text(inspector.call("greet", name="Ann")), "Hello, Ann!")


def prompts(inspector):
    expect("the prompts", len(inspector.ask("prompts/list")["prompts"]), 5)
    named = ["--prompt-name", "test_prompt_with_arguments", "--prompt-args", "arg1=one", "arg2=two"]
    prompt = inspector.ask("prompts/get", *named)
    expect("the arguments", "arg2='two'" in prompt["messages"][0]["content"]["text"], True)


def resources(inspector):
    expect("the resources", len(inspector.ask("resources/list")["resources"]), 3)
    expect("the templates", len(inspector.ask("resources/templates/list")["resourceTemplates"]), 1)
    read = inspector.ask("resources/read", "--uri", "test://template/7/data")
    expect("the data", "Data for ID: 7" in read["contents"][0]["text"], True)


def reconnection(inspector):
    expect("the answer", "The client came back" in text(inspector.call("test_reconnection")), True)


def main(server, era):
    inspector = Inspector(server, era)
    for work in [connect, tools, prompts, resources, reconnection]:
        step(work.__name__, work, inspector)
    for name, reason in SKIPPED.items():
        print(name, "skipped", reason, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
