"""Takes the client of the Python SDK through everything: tour.py URL|COMMAND MODE"""

import logging
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

from steps import expect, step

# What the user fills in, whatever form it is.
FORM = {"name": "Ann", "color": "red", "ok": True, "username": "ann", "email": "ann@example.com", "context": "tea"}

# Time enough for a call to reach its handler.
SECONDS_UNDER_WAY = 0.5


async def elicited(context, params):
    asked = params.requested_schema["properties"]
    return ElicitResult(action="accept", content={name: FORM[name] for name in asked if name in FORM})


async def sampled(context, params):
    return CreateMessageResult(role="assistant", model="none", content=TextContent(type="text", text="Paris"))


async def roots(context):
    return ListRootsResult(roots=[Root(uri="file:///tour", name="tour")])


def connect(server, mode, log):
    async def on_log(message):
        log.append(message.data)

    return Client(
        server if server.startswith("http") else StdioServerParameters(command=server, args=["--stdio"]),
        mode=mode,
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=roots,
        logging_callback=on_log,
        log_level="info",
    )


async def texts(client, tool, arguments=None, **options):
    result = await client.call_tool(tool, arguments or {}, **options)
    return [block.text for block in result.content if block.type == "text"]


async def says(client, expected, tool, arguments=None):
    found = await texts(client, tool, arguments)
    if not any(expected in text for text in found):
        raise AssertionError(f"{tool}: {found!r}")


async def tools(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    expect("the first tool", names[0], "test_simple_text")
    kinds = [block.type for block in (await client.call_tool("test_multiple_content_types", {})).content]
    expect("the kinds", kinds, ["text", "image", "resource"])
    expect("the sound", (await client.call_tool("test_audio_content", {})).content[0].mime_type, "audio/wav")
    expect("the failure", (await client.call_tool("test_error_handling", {})).is_error, True)
    await says(client, "Grüße", "test_custom_header", {"value": "Grüße"})
    await says(client, "Hello, Ann!", "greet", {"name": "Ann"})


async def reports(client, log):
    heard = []

    async def on_progress(progress, total, message):
        heard.append(progress)

    await texts(client, "test_tool_with_progress", progress_callback=on_progress)
    expect("the progress", heard, [0, 50, 100])
    before = len(log)
    await texts(client, "test_tool_with_logging")
    expect("the log", len(log) - before, 3)


async def questions(client):
    await says(client, "LLM response: Paris", "test_sampling", {"prompt": "The capital?"})
    await says(client, "ann@example.com", "test_elicitation", {"message": "Who are you?"})


async def rounds(client):
    await says(client, "Hello, Ann!", "test_input_required_result_elicitation")
    await says(client, "file:///tour", "test_input_required_result_list_roots")
    await says(client, "Paris", "test_input_required_result_multiple_inputs")
    await says(client, "Ann likes red.", "test_input_required_result_multi_round")
    await says(client, "state-ok, confirmed: true", "test_input_required_result_request_state")


async def prompts(client):
    expect("the prompts", len((await client.list_prompts()).prompts), 5)
    arguments = {"arg1": "one", "arg2": "two"}
    prompt = await client.get_prompt("test_prompt_with_arguments", arguments)
    expect("the arguments", "arg2='two'" in prompt.messages[0].content.text, True)
    prompt = await client.get_prompt("test_input_required_result_prompt")
    expect("the context", prompt.messages[0].content.text, "The context is: tea")


async def resources(client):
    expect("the resources", len((await client.list_resources()).resources), 3)
    expect("the templates", len((await client.list_resource_templates()).resource_templates), 1)
    read = await client.read_resource("test://template/7/data")
    expect("the data", "Data for ID: 7" in read.contents[0].text, True)


async def reconnection(client):
    await says(client, "The client came back", "test_reconnection")


async def cancel(client):
    with anyio.move_on_after(SECONDS_UNDER_WAY) as scope:
        await texts(client, "slow_compute", {"seconds": 60, "label": "it"})
    expect("given up", scope.cancelled_caught, True)
    await says(client, "Hello, Ann!", "greet", {"name": "Ann"})


async def tour(server, mode):
    async def version(client):
        return client.protocol_version

    log = []
    async with connect(server, mode, log) as client:
        await step("connect", version(client))
        await step("tools", tools(client))
        await step("reports", reports(client, log))
        await step("questions", questions(client))
        await step("rounds", rounds(client))
        await step("prompts", prompts(client))
        await step("resources", resources(client))
        await step("reconnection", reconnection(client))
        await step("cancel", cancel(client))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    anyio.run(tour, *sys.argv[1:])
