// The tool `render_diagram` over the Model Context Protocol, on standard input and output: one JSON-RPC message a line.
// It asks the render service at DIAGRAM_SCREENSHOT_URL, as a stage does.
'use strict';
const readline = require('node:readline');

const SERVICE = process.env.DIAGRAM_SCREENSHOT_URL || 'http://localhost:3001';
const TIMEOUT = Number(process.env.RENDER_TIMEOUT || 30);
const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const TOOL = {
  name: 'render_diagram',
  description: 'Render JSXGraph diagram JSON to PNG image using DiagramScreenshot service',
  inputSchema: {
    type: 'object',
    properties: { jsxgraph_json: { type: 'string', description: 'JSON with the key `diagram`: {board, elements}' } },
    required: ['jsxgraph_json'],
  },
};

const failed = (error, code) => ({
  content: [{ type: 'text', text: JSON.stringify({ success: false, error, error_code: code }) }],
  isError: true,
});

async function render(text) {
  let diagram;
  try {
    diagram = JSON.parse(text);
  } catch (error) {
    return failed(`Invalid JSON: ${error.message}`, 'INVALID_STRUCTURE');
  }
  if (diagram === null || typeof diagram !== 'object' || !('diagram' in diagram)) return failed("Missing 'diagram' key in JSON", 'INVALID_STRUCTURE');
  let answer;
  try {
    const response = await fetch(`${SERVICE}/api/v1/render`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(diagram),
      signal: AbortSignal.timeout(TIMEOUT * 1000),
    });
    answer = await response.json().catch(() => ({}));
    if (response.status !== 200) return failed(`HTTP ${response.status}${answer.error ? `: ${answer.error}` : ''}`, 'HTTP_ERROR');
  } catch (error) {
    if (error.name === 'TimeoutError') return failed(`Rendering timeout after ${TIMEOUT} seconds`, 'TIMEOUT');
    return failed(`Cannot connect to DiagramScreenshot service at ${SERVICE}`, 'CONNECTION_ERROR');
  }
  const { image = '', metadata = {} } = answer;
  return {
    content: [
      { type: 'text', text: JSON.stringify({ success: true, image, metadata }) },
      // A model sees an image, not base64 in a text.
      { type: 'image', data: image, mimeType: 'image/png' },
    ],
  };
}

async function result({ method, params }) {
  if (method === 'initialize') {
    const protocolVersion = VERSIONS.includes(params?.protocolVersion) ? params.protocolVersion : VERSIONS[0];
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'diagram-screenshot', version: '1.0.0' } };
  }
  if (method === 'ping') return {};
  if (method === 'tools/list') return { tools: [TOOL] };
  if (method === 'tools/call' && params?.name === TOOL.name) return render(String(params.arguments?.jsxgraph_json ?? ''));
  if (method === 'tools/call') throw Object.assign(new Error(`unknown tool ${params?.name}`), { code: -32602 });
  throw Object.assign(new Error(`unknown method ${method}`), { code: -32601 });
}

async function answer(line) {
  let request;
  try {
    request = JSON.parse(line);
  } catch {
    return { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'the message is no JSON' } };
  }
  if (request?.id === undefined) return null;
  try {
    return { jsonrpc: '2.0', id: request.id, result: await result(request) };
  } catch ({ code = -32603, message }) {
    return { jsonrpc: '2.0', id: request.id, error: { code, message } };
  }
}

readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  if (!line.trim()) return;
  const message = await answer(line);
  if (message) process.stdout.write(`${JSON.stringify(message)}\n`);
});
