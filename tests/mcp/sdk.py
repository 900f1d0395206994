"""A client on the official SDK: connects to `staled mcp`, does what its arguments say, prints what came back as JSON."""

import asyncio
import json
import sys

import jsonschema
from mcp import StdioServerParameters, stdio_client
from mcp.client import Client


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def one(client, step):
    what, *rest = step
    if what == "tools":
        tools = (await client.list_tools()).tools
        for tool in tools:
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        return [plain(tool) for tool in tools]
    if what == "call":
        name, arguments = rest
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        fits = jsonschema.Draft202012Validator(schemas[name]).is_valid(arguments)
        return {"fits": fits, **plain(await client.call_tool(name, arguments))}
    if what == "resources":
        return plain(await client.list_resources())
    if what == "templates":
        return plain(await client.list_resource_templates())
    if what == "read":
        return plain(await client.read_resource(rest[0]))
    raise ValueError(what)


async def main():
    program, socket, mode, steps = sys.argv[1:]
    server = StdioServerParameters(command=program, args=["mcp"], env={"STALED_SOCKET": socket})
    async with Client(stdio_client(server), mode=mode) as client:
        done = [await one(client, step) for step in json.loads(steps)]
        print(json.dumps({"version": client.session.protocol_version, "done": done}))


asyncio.run(main())
