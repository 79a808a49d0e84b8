// Runs in Chromium: draws the given diagram with JSXGraph, then says in the title where labels and points came to stand.
(() => {
  'use strict';
  const told = (value) => { document.title = btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value)))); };
  try {
    const { width, board: { title, strip, boundingbox, axis, grid, keepaspectratio }, elements } = JSON.parse(document.getElementById('given').textContent);
    JXG.Options.text.display = 'internal';
    JXG.Options.text.fontSize = 14;
    const board = JXG.JSXGraph.initBoard('box', { boundingbox, axis, grid, keepaspectratio, showCopyright: false, showNavigation: false });
    // A long title is set smaller.
    const heading = document.createElement('span');
    heading.textContent = title;
    document.getElementById('title').append(heading);
    const long = heading.getBoundingClientRect().width;
    if (long > width - 20) heading.style.fontSize = `${Math.floor((18 * (width - 20)) / long)}px`;
    const [labels, points, lines] = [[], [], []];
    const named = new Map();
    for (const { type, name, parents, attributes } of elements) {
      // Names are resolved here, as the service does: JSXGraph would take letters of a term or a text for elements.
      const isPlain = ['text', 'functiongraph'].includes(type);
      // The ends of an angle that have no name are not seen.
      const end = (at) => (type.endsWith('angle') && Array.isArray(at) ? board.create('point', at, { visible: false, withLabel: false, fixed: true }) : at);
      const of = parents.map((parent) => (!isPlain && typeof parent === 'string' ? named.get(parent) : end(parent)));
      const fixed = type === 'text' ? { parse: false } : {};
      // Only what is asked for is filled, as in the plain renderer.
      const empty = attributes.fillColor ? {} : { fillColor: 'none' };
      const quiet = { vertices: { visible: false, withLabel: false }, point1: { visible: false }, point2: { visible: false }, center: { visible: false } };
      const borders = type === 'polygon' && attributes.strokeColor ? { borders: { strokeColor: attributes.strokeColor, strokeWidth: attributes.strokeWidth ?? 1 } } : {};
      const withLabel = type === 'point' && name !== '' && attributes.withLabel !== false;
      const element = board.create(type, of, { ...quiet, ...(type === 'point' ? {} : empty), ...borders, ...fixed, ...attributes, name: type === 'text' ? '' : name, withLabel, fixed: true });
      if (type === 'point') {
        named.set(name, element);
        if (attributes.visible !== false) points.push({ name, x: element.coords.scrCoords[1], y: element.coords.scrCoords[2] + strip });
      }
      if (type !== 'point' && type !== 'text' && attributes.visible !== false) {
        for (const part of element.borders ?? [element]) lines.push([name || type, part.rendNode]);
      }
      if (withLabel && attributes.visible !== false) labels.push([name, element.label]);
      if (type === 'text' && attributes.visible !== false) labels.push([parents[2], element]);
    }
    board.fullUpdate();
    const round = (number) => Math.round(number * 10) / 10;
    if (strip) labels.push([title, { rendNode: heading }]);
    const boxes = labels.map(([text, { rendNode }]) => {
      const { x, y, width, height } = rendNode.getBoundingClientRect();
      // Every pixel of the box, and one beside it.
      const inside = (from, long) => Array.from({ length: Math.ceil(long) + 3 }, (_, n) => from - 1 + n);
      // Places in a line are counted from the corner of the board, below the title.
      const spots = inside(y, height).flatMap((py) => inside(x, width).map((px) => new DOMPoint(px, py - strip)));
      const crossed = lines.filter(([, line]) => spots.some((spot) => line.isPointInStroke?.(spot)));
      return { text, x: round(x), y: round(y), width: round(width), height: round(height), crossed_by: [...new Set(crossed.map(([name]) => name))] };
    });
    const ticks = Object.values(board.defaultAxes ?? {}).flatMap((line) => line.defaultTicks.labels.filter((label) => label.visPropCalc.visible))
      .map((label) => ({ text: label.plaintext, box: label.rendNode.getBoundingClientRect() }))
      .map(({ text, box: { x, y, width, height } }) => ({ text, x: round(x), y: round(y), width: round(width), height: round(height) }))
      .filter(({ width }) => width > 0);
    told({ ticks, labels: boxes, points: points.map(({ name, x, y }) => ({ name, x: round(x), y: round(y) })) });
  } catch (error) {
    told({ error: String(error.message ?? error) });
  }
})();
