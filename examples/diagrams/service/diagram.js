// What a request may hold: a diagram, checked and brought into one form for both renderers.
'use strict';

/** How an element is declared: `@` is an element by its name or a point as [x, y], `#` a number, `$` a text, `f` a term of x. */
const TYPES = {
  point: ['##'],
  text: ['##$'],
  segment: ['@@'], line: ['@@'], arrow: ['@@'],
  circle: ['@#', '@@'],
  polygon: ['@*'],
  angle: ['@@@'], nonreflexangle: ['@@@'],
  functiongraph: ['f', 'f##'],
};
/** Attributes that both renderers draw; all others, and values that do not fit, are left out and named in the answer. Colours are `#rrggbb`. */
const ATTRIBUTES = ['strokeColor', 'fillColor', 'fillOpacity', 'strokeWidth', 'dash', 'size', 'fontSize', 'radius', 'anchorX', 'visible', 'withLabel', 'label'];
const LABEL = ['offset', 'anchorX', 'fontSize', 'strokeColor'];
const FITTING = {
  strokeColor: isColor, fillColor: isColor, anchorX: (value) => ['left', 'middle', 'right'].includes(value), label: isObject,
  offset: (value) => Array.isArray(value) && value.length === 2 && value.every(isNumber),
  visible: isFlag, withLabel: isFlag, dash: isNumber, fillOpacity: isNumber, strokeWidth: isNumber, size: isNumber, fontSize: isNumber, radius: isNumber,
};
/** The height of the line above the board that shows `board.title`, in pixels. */
const TITLE = 40;
/** More elements than a picture of this size can show. */
const MOST = 200;
/** A point lies at most so many boards away from the board. */
const FAR = 50;

function isNumber(value) { return typeof value === 'number' && Number.isFinite(value); }
function isFlag(value) { return typeof value === 'boolean'; }
function isColor(value) { return typeof value === 'string' && /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.test(value); }
function isObject(value) { return value !== null && typeof value === 'object'; }

/** A fault of the request, with the status that it is answered with. */
class Refused extends Error {
  constructor(message, code = 'INVALID_STRUCTURE', status = 400) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** Reads the body of a request. */
function read(body) {
  if (body === null || typeof body !== 'object' || !('diagram' in body)) throw new Refused("Missing 'diagram' key in JSON");
  const { board, elements } = body.diagram ?? {};
  const box = board?.boundingbox;
  if (!Array.isArray(box) || box.length !== 4 || !box.every(isNumber) || !(box[0] < box[2] && box[3] < box[1]))
    throw new Refused('diagram.board.boundingbox must be [left, top, right, bottom], left below right and bottom below top');
  if (!Array.isArray(elements)) throw new Refused('diagram.elements must be a list');
  if (elements.length > MOST) throw new Refused(`diagram.elements has ${elements.length} elements, ${MOST} are the most`);
  const ignored = new Set();
  const names = new Map();
  const read = elements.map((element, place) => {
    const where = `diagram.elements[${place}]`;
    const { type, name = '', parents } = element ?? {};
    if (!Object.hasOwn(TYPES, type)) throw new Refused(`${where}.type is ${JSON.stringify(type)}; known are ${Object.keys(TYPES).join(', ')}`);
    if (typeof name !== 'string') throw new Refused(`${where}.name must be a text`);
    if (!Array.isArray(parents) || !TYPES[type].some((form) => fits(form, parents, names)))
      throw new Refused(`${where}.parents ${JSON.stringify(parents)} do not make a ${type}: names of points above, [x, y], numbers or a term`);
    for (const [x, y] of [type === 'point' || type === 'text' ? parents : [], ...parents.filter(Array.isArray)].filter((point) => point.length))
      if (Math.abs(x - box[0]) > FAR * (box[2] - box[0]) || Math.abs(y - box[3]) > FAR * (box[1] - box[3])) throw new Refused(`${where}: [${x}, ${y}] lies far outside the board`);
    for (const radius of [type === 'circle' ? parents[1] : 0, element.attributes?.radius])
      if (isNumber(radius) && Math.abs(radius) > FAR * (box[2] - box[0])) throw new Refused(`${where}: the radius ${radius} is far larger than the board`);
    if (type === 'functiongraph') term(parents[0], where);
    const attributes = chosen(element.attributes, ATTRIBUTES, 'attributes', ignored);
    if (attributes.label) attributes.label = chosen(attributes.label, LABEL, 'attributes.label', ignored);
    if (name && type === 'point') names.set(name, place);
    return { type, name, parents, attributes };
  });
  const { width = 600, height = 600 } = body.options ?? {};
  for (const side of [width, height]) if (!Number.isInteger(side) || side < 100 || side > 2000) throw new Refused('options.width and options.height must be 100 to 2000');
  const title = board.title ?? '';
  if (typeof title !== 'string' || title.length > 100) throw new Refused('diagram.board.title must be a text of at most 100 letters');
  const strip = title.trim() ? TITLE : 0;
  const flags = Object.fromEntries(['axis', 'grid', 'keepaspectratio'].map((flag) => [flag, board[flag] === true]));
  return { board: { title, strip, boundingbox: box, ...flags }, elements: read, width, height, ignored: [...ignored].sort() };
}

function chosen(given, known, where, ignored) {
  const kept = {};
  for (const [key, value] of Object.entries(given ?? {})) {
    if (!known.includes(key)) ignored.add(`${where}.${key}`);
    else if (!FITTING[key](value)) ignored.add(`${where}.${key}: ${JSON.stringify(value)}`);
    else kept[key] = value;
  }
  return kept;
}

function fits(form, parents, names) {
  const isPoint = (value) => (typeof value === 'string' ? names.has(value) : Array.isArray(value) && value.length === 2 && value.every(isNumber));
  if (form === '@*') return parents.length >= 3 && parents.every(isPoint);
  const of = { '@': isPoint, '#': isNumber, $: (value) => typeof value === 'string', f: (value) => typeof value === 'string' };
  return form.length === parents.length && [...form].every((sign, place) => of[sign](parents[place]));
}

const FUNCTIONS = { sin: Math.sin, cos: Math.cos, tan: Math.tan, sqrt: Math.sqrt, abs: Math.abs, exp: Math.exp, log: Math.log };

/** A term of x, such as `x^2 - 4*x + 3`, as a function: numbers, x, PI, + - * / ^, brackets and a few functions. */
function term(text, where = 'term') {
  const tokens = text.match(/\d+(?:\.\d+)?|[A-Za-z]+|\S/g) ?? [];
  let at = 0;
  const wrong = () => new Refused(`${where}: ${JSON.stringify(text)} is no term of x${tokens[at] ? `, at ${JSON.stringify(tokens[at])}` : ''}`);
  const sum = () => joined(product, { '+': (a, b) => a + b, '-': (a, b) => a - b });
  const product = () => joined(signed, { '*': (a, b) => a * b, '/': (a, b) => a / b });
  const signed = () => {
    if (tokens[at] !== '-') return power();
    at += 1;
    const inner = signed();
    return (x) => -inner(x);
  };
  function power() {
    const base = single();
    if (tokens[at] !== '^') return base;
    at += 1;
    const exponent = signed();
    return (x) => base(x) ** exponent(x);
  }
  function joined(part, signs) {
    let left = part();
    while (Object.hasOwn(signs, tokens[at] ?? '')) {
      const [sign, before] = [signs[tokens[at]], left];
      at += 1;
      const right = part();
      left = (x) => sign(before(x), right(x));
    }
    return left;
  }
  function single() {
    const token = tokens[at] ?? '';
    if (/^\d/.test(token)) { at += 1; return () => Number(token); }
    if (token === 'x') { at += 1; return (x) => x; }
    if (token === 'PI') { at += 1; return () => Math.PI; }
    const called = Object.hasOwn(FUNCTIONS, token) ? FUNCTIONS[token] : undefined;
    if (called) at += 1;
    if (tokens[at] !== '(') throw wrong();
    at += 1;
    const inner = sum();
    if (tokens[at] !== ')') throw wrong();
    at += 1;
    return called ? (x) => called(inner(x)) : inner;
  }
  const whole = sum();
  if (at < tokens.length) throw wrong();
  return whole;
}

module.exports = { read, term, Refused };
