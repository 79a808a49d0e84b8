"""The MCP server by the Python package: handshake, list, a run with progress, each tool that only reads, a fault."""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def data(result):
    return result.structured_content


async def main(program, project):
    server = StdioServerParameters(command=program, args=["-C", project, "mcp"])
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        hello = await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        assert "check_stage_completion" in tools, tools
        told = []

        async def progress(done, total, message):
            told.append((done, total, message))

        run = await session.call_tool("run", {"force": True}, progress_callback=progress)
        assert data(run)["status"] == "complete", run
        assert [done for done, _, _ in told] == sorted({done for done, _, _ in told}) and told, told
        # The package checks each result against the schema of its tool.
        for name, arguments in [
            ("check_stage_completion", {"stage_num": 1}),
            ("plan", {}),
            ("status", {}),
            ("why", {"what": "join"}),
            ("log", {}),
            ("verify", {"deep": True}),
        ]:
            result = await session.call_tool(name, arguments)
            assert not result.is_error and data(result)["success"], result
        late = await session.call_tool("wait_for_subagent", {"output_file": "x.json", "timeout": 0})
        assert late.is_error and data(late)["error"] == "Timeout waiting for subagent", late
        print(f"Python mcp: {len(tools)} tools by {hello.protocol_version}, {len(told)} notifications of progress")


asyncio.run(main(*sys.argv[1:]))
