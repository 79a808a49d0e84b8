// The plain renderer: draws the diagram itself, without a browser and without JSXGraph.
'use strict';
const { strokes, width: textWidth } = require('./letters.js');
const { term } = require('./diagram.js');
const { Picture } = require('./png.js');

const FRAME = { grid: '#e3e6ea', axis: '#666666' };

function color(value, otherwise) {
  const text = value ?? otherwise;
  return text.length === 4 ? `#${[...text.slice(1)].map((digit) => digit + digit).join('')}` : text;
}

/** Draws a diagram. Gives the PNG, and where labels and points are in it, in pixels from the top left. */
function draw({ board, elements, width, height }) {
  const picture = new Picture(width, height);
  const { title, strip } = board;
  const { left, top, ux, uy, right, bottom } = frame(board, width, height - strip);
  const at = ([x, y]) => [(x - left) * ux, strip + (top - y) * uy];
  const [labels, points, ticks, texts, lines] = [[], [], [], [], []];
  const known = new Map();
  const place = (parent) => (typeof parent === 'string' ? known.get(parent) : parent);
  let current;
  const line = (list, attributes, otherwise, thick = 2) => {
    lines.push({ name: current, list });
    const parts = attributes.dash ? dashed(list) : [list];
    for (const part of parts) picture.stroke(part, color(attributes.strokeColor, otherwise), attributes.strokeWidth ?? thick);
  };
  const write = (text, x, y, anchor, attributes) => {
    const size = attributes.fontSize ?? 14;
    const long = textWidth(text, size);
    const start = x - { left: 0, middle: long / 2, right: long }[anchor ?? 'left'];
    labels.push({ text, x: round(start), y: round(y - 0.6 * size), width: round(long), height: round(1.2 * size) });
    texts.push(() => { for (const part of strokes(text, start, y, size)) picture.stroke(part, color(attributes.strokeColor, '#000000'), size / 9); });
  };
  if (board.grid || board.axis) axes(picture, board, { left, top, right, bottom, at }, ticks);
  for (const { type, name, parents, attributes } of elements) {
    current = name || type;
    if (type === 'point') known.set(name, parents);
    if (attributes.visible === false) continue;
    const where = type === 'text' || type === 'point' || type === 'functiongraph' ? [] : parents.filter((parent) => typeof parent !== 'number').map(place);
    if (type === 'point') {
      const [x, y] = at(parents);
      points.push({ name, x: round(x), y: round(y) });
      const { fillColor, strokeColor, size = 3 } = attributes;
      texts.push(() => {
        if (fillColor && strokeColor && fillColor !== strokeColor) picture.stroke([[x, y]], color(strokeColor), 2 * size + 3);
        picture.stroke([[x, y]], color(fillColor ?? strokeColor, '#d32f2f'), 2 * size);
      });
      const { offset = [10, 10], anchorX, ...look } = attributes.label ?? {};
      if (name && attributes.withLabel !== false) write(name, x + offset[0], y - offset[1], anchorX, look);
    } else if (type === 'text') {
      write(parents[2], ...at(parents), attributes.anchorX, attributes);
    } else if (type === 'segment' || type === 'arrow') {
      line(where.map(at), attributes, '#0d47a1');
      if (type === 'arrow') line(head(...where.map(at)), attributes, '#0d47a1');
    } else if (type === 'line') {
      const [[ax, ay], [bx, by]] = where;
      const long = (Math.abs(right - left) + Math.abs(top - bottom)) / Math.hypot(bx - ax, by - ay);
      line([-long, long].map((t) => at([ax + t * (bx - ax), ay + t * (by - ay)])), attributes, '#0d47a1');
    } else if (type === 'circle') {
      const radius = typeof parents[1] === 'number' ? parents[1] : Math.hypot(where[1][0] - where[0][0], where[1][1] - where[0][1]);
      const ring = turn(where[0], radius, 0, 2 * Math.PI, 96).map(at);
      fill(picture, ring, attributes, 0);
      line(ring, attributes, '#0d47a1');
    } else if (type === 'polygon') {
      const ring = where.map(at);
      fill(picture, ring, attributes, 0.3);
      line([...ring, ring[0]], attributes, '#0d47a1', 1);
    } else if (type === 'functiongraph') {
      const [from, to] = parents.length === 3 ? parents.slice(1) : [left, right];
      const value = term(parents[0]);
      let run = [];
      const runs = [run];
      for (let step = 0; step <= width; step += 1) {
        const x = from + ((to - from) * step) / width;
        const y = value(x);
        if (y > bottom - 2 * (top - bottom) && y < top + 2 * (top - bottom)) run.push(at([x, y]));
        else if (run.length) runs.push(run = []);
      }
      for (const part of runs) if (part.length > 1) line(part, attributes, '#0d47a1');
    } else {
      angle(picture, where, type, attributes, at, line);
    }
  }
  if (strip) {
    // Nothing of the board reaches into the line of the title.
    picture.fill([[0, 0], [width, 0], [width, strip], [0, strip]], '#ffffff', 1);
    write(title, width / 2, strip / 2, 'middle', { fontSize: titleSize(title, width) });
  }
  for (const text of texts) text();
  for (const label of labels) label.crossed_by = [...new Set(lines.filter(({ list }) => label.y >= strip && crosses(list, label)).map(({ name }) => name))];
  return { png: picture.png(), labels, points, ticks };
}

/** The size of a title that fits into the width of the picture. */
function titleSize(title, width) {
  return Math.min(18, Math.floor((18 * (width - 20)) / textWidth(title, 18)));
}

/** Whether a line passes through a box, or a pixel beside it. */
function crosses(list, { x, y, width, height }) {
  return list.slice(1).some(([bx, by], place) => {
    const [ax, ay] = list[place];
    const parts = Math.ceil(Math.hypot(bx - ax, by - ay));
    return Array.from({ length: parts + 1 }, (_, n) => n / (parts || 1)).some((share) => {
      const [px, py] = [ax + share * (bx - ax), ay + share * (by - ay)];
      return px > x - 1 && px < x + width + 1 && py > y - 1 && py < y + height + 1;
    });
  });
}

const round = (number) => Math.round(number * 10) / 10;

/** The board's box, and pixels of a unit; `keepaspectratio` widens the box. */
function frame({ boundingbox: [left, top, right, bottom], keepaspectratio }, width, height) {
  let [ux, uy] = [width / (right - left), height / (top - bottom)];
  if (!keepaspectratio) return { left, top, right, bottom, ux, uy };
  ux = uy = Math.min(ux, uy);
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  return { left: x - width / ux / 2, right: x + width / ux / 2, top: y + height / uy / 2, bottom: y - height / uy / 2, ux, uy };
}

function axes(picture, { axis, grid }, { left, top, right, bottom, at }, ticks) {
  const step = (span) => {
    const ten = 10 ** Math.floor(Math.log10(span / 8));
    return [1, 2, 5, 10].map((n) => n * ten).find((n) => span / n <= 12);
  };
  const marks = (from, to) => {
    const by = step(to - from);
    const first = Math.ceil(from / by);
    const all = Array.from({ length: Math.floor(to / by) - first + 1 }, (_, n) => Number(((first + n) * by).toPrecision(12)));
    // A number at the very edge would be cut.
    return all.filter((mark) => mark - from > (to - from) / 40 && to - mark > (to - from) / 40);
  };
  for (const x of marks(left, right)) {
    if (grid) picture.stroke([at([x, top]), at([x, bottom])], FRAME.grid, 1);
    if (axis && x !== 0) ticks.push(number(picture, x, at([x, 0]), 0, 12));
  }
  for (const y of marks(bottom, top)) {
    if (grid) picture.stroke([at([left, y]), at([right, y])], FRAME.grid, 1);
    if (axis && y !== 0) ticks.push(number(picture, y, at([0, y]), -12, 0));
  }
  if (!axis) return;
  for (const ends of [[[left, 0], [right, 0]], [[0, bottom], [0, top]]]) {
    const [a, b] = ends.map(at);
    picture.stroke([a, b], FRAME.axis, 1.2);
    picture.stroke(head(a, b), FRAME.axis, 1.2);
  }
}

/** Writes a number beside an axis; returns its box. */
function number(picture, value, [x, y], dx, dy) {
  const text = String(value);
  picture.stroke(dx ? [[x - 3, y], [x + 3, y]] : [[x, y - 3], [x, y + 3]], FRAME.axis, 1);
  const start = dx ? x + dx / 2 - 2 - textWidth(text, 11) : x - textWidth(text, 11) / 2;
  for (const part of strokes(text, start, y + dy, 11)) picture.stroke(part, FRAME.axis, 1.1);
  return { text, x: round(start), y: round(y + dy - 5), width: round(textWidth(text, 11)), height: 10 };
}

function fill(picture, ring, { fillColor, fillOpacity }, otherwise) {
  if (fillColor) picture.fill(ring, color(fillColor, '#ffffff'), fillOpacity ?? (otherwise || 0.3));
}

/** The two sides of an arrow's head, at `b`. */
function head([ax, ay], [bx, by]) {
  const way = Math.atan2(by - ay, bx - ax);
  const side = (turned) => [bx - 9 * Math.cos(way + turned), by - 9 * Math.sin(way + turned)];
  return [side(0.4), [bx, by], side(-0.4)];
}

/** An arc as points. */
function turn([x, y], radius, from, to, parts) {
  return Array.from({ length: parts + 1 }, (_, n) => {
    const a = from + ((to - from) * n) / parts;
    return [x + radius * Math.cos(a), y + radius * Math.sin(a)];
  });
}

/** An angle from the first leg to the last, against the clock; a right one is a square. */
function angle(picture, [a, b, c], type, attributes, at, line) {
  const way = ([x, y]) => Math.atan2(y - b[1], x - b[0]);
  const whole = 2 * Math.PI;
  let [from, size] = [way(a), (way(c) - way(a) + 2 * whole) % whole];
  if (type === 'nonreflexangle' && size > Math.PI) [from, size] = [way(c), whole - size];
  const radius = attributes.radius ?? 0.5;
  const leg = (turned, long = radius) => [b[0] + long * Math.cos(from + turned), b[1] + long * Math.sin(from + turned)];
  const right = Math.abs(size - Math.PI / 2) < Math.PI / 180;
  const outer = right ? [leg(0), leg(size / 2, radius * Math.SQRT2), leg(size)] : turn(b, radius, from, from + size, 32);
  fill(picture, [b, ...outer].map(at), attributes, 0.3);
  line(outer.map(at), attributes, '#ff7f00', 1.5);
}

/** A line in dashes of 8 pixels with gaps of 5. */
function dashed(points) {
  const parts = [];
  let [part, left, drawn] = [[points[0]], 8, true];
  for (let place = 1; place < points.length; place += 1) {
    let [from, to] = [points[place - 1], points[place]];
    let long = Math.hypot(to[0] - from[0], to[1] - from[1]);
    while (long > left) {
      const share = left / long;
      from = [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])];
      if (drawn) parts.push([...part, from]);
      part = [from];
      long -= left;
      [drawn, left] = [!drawn, drawn ? 5 : 8];
    }
    left -= long;
    part.push(to);
  }
  if (drawn) parts.push(part);
  return parts;
}

module.exports = { draw };
