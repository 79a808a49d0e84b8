// The render service: POST /api/v1/render with {"diagram": {board, elements}, "options": {renderer, width, height}}
// answers {"success": true, "image": base64 of a PNG, "metadata": {…}}, or {"success": false, "error", "error_code"}; GET /health says what it can draw with.
'use strict';
const http = require('node:http');
const browser = require('./browser.js');
const plain = require('./plain.js');
const { read, Refused } = require('./diagram.js');

const LARGEST = 1 << 20;
const RENDERERS = {
  plain: { draw: plain.draw, note: 'drawn by the service itself: neither a browser nor JSXGraph had a part in it' },
  jsxgraph: { draw: browser.draw, note: 'drawn by JSXGraph in Chromium' },
};

const url = new URL(process.env.DIAGRAM_SCREENSHOT_URL || 'http://localhost:3001');
if (!['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)) {
  console.error(`DIAGRAM_SCREENSHOT_URL names ${url.hostname}, another machine, and no service answers there: start one there`);
  process.exit(2);
}

/** One picture after another: Chromium takes memory. */
let last = Promise.resolve();

async function render(body) {
  let asked;
  try {
    asked = JSON.parse(body);
  } catch (error) {
    throw new Refused(`the request is no JSON: ${error.message}`);
  }
  const renderer = asked?.options?.renderer ?? 'plain';
  if (!Object.hasOwn(RENDERERS, renderer)) throw new Refused(`options.renderer is ${JSON.stringify(renderer)}; known are ${Object.keys(RENDERERS).join(' and ')}`);
  const given = read(asked);
  const { draw, note } = RENDERERS[renderer];
  const drawn = last.then(() => draw(given));
  last = drawn.catch(() => {});
  const { png, labels, points } = await drawn;
  const { width, height, ignored } = given;
  return { success: true, image: png.toString('base64'), metadata: { renderer, note, format: 'png', width, height, labels, points, ignored } };
}

async function bodyOf(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > LARGEST) throw new Refused(`the request is larger than ${LARGEST} bytes`, 'TOO_LARGE', 413);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

async function answer(request) {
  const { pathname } = new URL(request.url, 'http://service');
  if (pathname === '/health') return { status: 'ok', renderers: { plain: true, jsxgraph: browser.found().missing.length === 0 } };
  if (pathname !== '/api/v1/render') throw new Refused(`nothing is at ${pathname}: POST /api/v1/render draws`, 'NOT_FOUND', 404);
  if (request.method !== 'POST') throw new Refused('/api/v1/render takes POST', 'METHOD_NOT_ALLOWED', 405);
  return render(await bodyOf(request));
}

const server = http.createServer(async (request, response) => {
  let [status, body] = [200, null];
  try {
    body = await answer(request);
  } catch (error) {
    status = error instanceof Refused ? error.status : 500;
    body = { success: false, error: error.message, error_code: error instanceof Refused ? error.code : 'RENDER_FAILED' };
  }
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
});
server.on('error', (error) => { console.error(`${url.href}: ${error.message}`); process.exit(1); });
server.listen(Number(url.port || 80), url.hostname === '[::1]' ? '::1' : '127.0.0.1');
