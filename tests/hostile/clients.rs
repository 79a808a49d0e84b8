//! Clients of the MCP server that take more than their share.
