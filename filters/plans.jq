# The plans of the storeys, in one pass over the records: `inputs` gives them one at a time.
# Coordinates are metres of the model. All storeys share the scale, and those that fill enough of it the extent, so that plans
# compare. Of a storey the largest outlines are kept, so that memory is bounded; whatever is not drawn is counted, with its reason and the first names.

def most: {shapes: 5000, names: 5};
# Millimetres: the largest plan, and the smallest shape.
def paper: {width: 170, height: 205, least: 0.3};
def scales: [20, 25, 50, 75, 100, 150, 200, 250, 300, 400, 500, 750, 1000, 1500, 2000, 5000, 10000, 20000, 50000, 100000, 1000000, 10000000, 100000000, 1000000000];

# In the order of the legend. `light` fills what is seen from above, `line` is the outline of what is cut.
# The colours differ in lightness as well, for readers who see few of them.
def classes: [
  {class: "wall", en: "Walls", de: "Wände", fill: "#7f8c99", light: "#d3d9df", line: "#1f2933"},
  {class: "structure", en: "Columns, beams", de: "Stützen, Träger", fill: "#33557f", light: "#bccbdd", line: "#1f2933"},
  {class: "window", en: "Windows, curtain walls", de: "Fenster, Vorhangfassaden", fill: "#7cc0e2", light: "#d9eef8", line: "#2b6f91"},
  {class: "door", en: "Doors", de: "Türen", fill: "#e0ad4b", light: "#f6e7c6", line: "#8a6212"},
  {class: "stair", en: "Stairs, ramps, railings", de: "Treppen, Rampen, Geländer", fill: "#8d82ba", light: "#dfdbef", line: "#4b4178"},
  {class: "slab", en: "Slabs, floors, roofs", de: "Decken, Böden, Dächer", fill: "#c3c9cf", light: "#f0f2f4", line: "#5f6c7b"},
  {class: "furniture", en: "Furniture", de: "Möbel", fill: "#bfa98f", light: "#f1e9df", line: "#75603f"},
  {class: "distribution", en: "Building services", de: "Gebäudetechnik", fill: "#3f9e86", light: "#cde8e0", line: "#1c6152"},
  {class: "rest", en: "Other classes", de: "Andere Klassen", fill: "#a3a9af", light: "#e4e7ea", line: "#4f5963"},
  {class: "unclassified", en: "Unclassified or uncertain", de: "Unklar oder unsicher", fill: "#d62828", light: "#f6b3ae", line: "#a31616"}
];
def class_of: {
  load_bearing_wall: "wall", core_wall: "wall", foundation_wall: "wall", external_wall: "wall", partition_wall: "wall",
  wall_finish: "wall",
  column: "structure", beam: "structure", member: "structure", footing: "structure", pile: "structure",
  window: "window", curtain_wall: "window",
  door_external: "door", door_internal: "door",
  stair: "stair", ramp: "stair", railing: "stair",
  foundation_slab: "slab", slab_structural: "slab", roof_structure: "slab", roof_covering: "slab", ceiling: "slab",
  raised_floor: "slab", floor_finish: "slab",
  furniture: "furniture", distribution: "distribution", other: "unclassified"
};
# From the bottom of the drawing to its top. What is above the cut comes under what is cut, so that dashes never hide a wall.
def layers: {
  below: ["slab", "rest", "unclassified", "distribution", "stair", "wall", "structure", "window", "door", "furniture"],
  cut: ["slab", "rest", "distribution", "furniture", "stair", "wall", "structure", "window", "door", "unclassified"],
  above: ["slab", "rest", "wall", "window", "door", "furniture", "stair", "distribution", "structure", "unclassified"]
};
def exact: . * 1000 | round / 1000;
# Lengths are millimetres on paper. Lines are thinner where walls are.
def drawn($view; $scale):
  ((if .class == "unclassified" then 1.6 else 1 end) * (if $scale > 250 then 0.5 elif $scale > 100 then 0.75 else 1 end)) as $weight
  | if $view == "cut" then {fill, stroke: .line, width: (0.18 * $weight | exact), dash: []}
    elif $view == "below" then {fill: .light, stroke: (if .class == "unclassified" then .line else "#98a2ac" end), width: (0.1 * $weight | exact), dash: []}
    else {fill: null, stroke: (if .class == "unclassified" then .fill else "#7b8794" end), width: (0.1 * $weight | exact), dash: [1, 0.7]} end;

# Text that every reader of XML takes.
def clean: gsub("[\\x{0}-\\x{1f}\\x{7f}-\\x{9f}\\x{fffe}\\x{ffff}]"; "�") | .[:120];
def named: if .name == null or .name == "" then .global_id else .name end | clean;

def left_out($reason; $e):
  .not_drawn[$reason] |= ((. // {count: 0, first: []}) | .count += 1
    | if (.first | length) < most.names then .first += [$e | named] else . end);

# [class, view, the longer side of its box, x0, y0, x1, y1, GlobalId, name, path]. Paths are those of SVG: `M x,y,x,y Z` for each ring.
def largest: sort_by(-.[2]) | .[:most.shapes];

def path_data: [.[] | tojson | "M" + ltrimstr("[") | rtrimstr("]") + "Z"] | add;

def shape($e; $class; $rings):
  [$rings[] as $ring | range(0; $ring | length; 2) | $ring[.]] as $xs
  | [$rings[] as $ring | range(1; $ring | length; 2) | $ring[.]] as $ys
  | ($xs | min) as $x0 | ($xs | max) as $x1 | ($ys | min) as $y0 | ($ys | max) as $y1
  | [$class, ($e.outline.view | if . == "below" or . == "above" then . else "cut" end), ([$x1 - $x0, $y1 - $y0] | max), $x0, $y0, $x1, $y1, $e.global_id, $e.name,
      ($rings | path_data)];

# The path, its coordinates from another origin.
def moved($x; $y):
  [split("Z")[:-1][] | "[" + ltrimstr("M") + "]" | fromjson
    | [range(0; length; 2) as $i | (.[$i] - $x, .[$i + 1] - $y) | exact]]
  | path_data;

# Lower and upper edge of sorted coordinates, and of whatever is not far from nine tenths of them.
def bounds:
  (length - 1) as $last
  | .[$last * 0.05 | floor] as $low | .[$last * 0.95 | ceil] as $high
  | {low: ($low - ($high - $low) - 1), high: ($high + ($high - $low) + 1)};

def extent:
  ([.[] | .[3], .[5]] | sort | bounds) as $x
  | ([.[] | .[4], .[6]] | sort | bounds) as $y
  | map(select(.[3] >= $x.low and .[5] <= $x.high and .[4] >= $y.low and .[6] <= $y.high))
  | {x0: (map(.[3]) | min), y0: (map(.[4]) | min), x1: (map(.[5]) | max), y1: (map(.[6]) | max)}
  # A plan has some width, even if all it shows is a line.
  | {x0, y0, x1: ([.x1, .x0 + 0.1] | max), y1: ([.y1, .y0 + 0.1] | max)};

def record($s): {global_id: $s[7], name: $s[8]};

# The extent of a storey: that of all, unless its shapes fill less than a third of it. Then it is theirs, so that no page is empty.
def extent_in($frame):
  if length == 0 then $frame
  else {x0: (map(.[3]) | min), y0: (map(.[4]) | min), x1: (map(.[5]) | max), y1: (map(.[6]) | max)}
    | if (.x1 - .x0) * (.y1 - .y0) * 3 > ($frame.x1 - $frame.x0) * ($frame.y1 - $frame.y0) then $frame
      else {x0: (.x0 - 0.1), y0: (.y0 - 0.1), x1: (.x1 + 0.1), y1: (.y1 + 0.1)} end
  end;

# One storey: layers from the bottom up, the legend, and what is not drawn.
def storey($frame; $scale):
  reduce .shapes[] as $s (. + {shapes: []};
    if $s[3] > $frame.x1 or $s[5] < $frame.x0 or $s[4] > $frame.y1 or $s[6] < $frame.y0
    then left_out("far from the other elements"; record($s))
    elif $s[2] * 1000 / $scale < paper.least
    then left_out("smaller than \(paper.least) mm on paper"; record($s))
    else .shapes += [$s] end)
  | (reduce .shapes[] as $s ({}; .[$s[1] + " " + $s[0]] += [$s])) as $groups
  | (.shapes | extent_in($frame)) as $box
  | {
      storey, elevation_m, elements,
      drawn: (.shapes | length),
      extent: ([$box.x0 - $frame.dx, $box.y0 - $frame.dy, $box.x1 - $frame.dx, $box.y1 - $frame.dy] | map(exact)),
      layers: [
        ("below", "above", "cut") as $view
        | layers[$view][] as $class
        | $groups[$view + " " + $class] | select(. != null)
        | {class: $class, view: $view}
          + (classes[] | select(.class == $class) | drawn($view; $scale))
          + {elements: (sort_by(-.[2]) | map({
              global_id: .[7], name: (record(.) | named),
              path: (if $frame.far then .[9] | moved($frame.dx; $frame.dy) else .[9] end)}))}
      ],
      legend: [
        classes[] as $class
        | ([("below", "cut", "above") as $view | $groups[$view + " " + $class.class] | length] | add) as $count
        | select($count > 0)
        | {label: "\($class[$params.language // "en"] // $class.en) \($count)"} + ($class | drawn("cut"; $scale))
      ],
      not_drawn: (
        (if .dropped > 0 then [{reason: "beyond the \(most.shapes) largest of the storey", count: .dropped, first: []}] else [] end)
        + (.not_drawn | to_entries | map({reason: .key} + .value))
        | sort_by([-.count, .reason]))
    };

$params.review_below as $below
| reduce inputs as $e ({};
    ([$e.storey, $e.storey_elevation_m] | tojson) as $key
    | .[$key] |= (
        (. // {storey: $e.storey, elevation_m: $e.storey_elevation_m, elements: 0, shapes: [], dropped: 0, not_drawn: {}})
        | .elements += 1
        | [$e.outline.rings[]? | select(length > 5 and length % 2 == 0)] as $rings
        | if $rings == [] then
            left_out(if ($e.parts // 0) > 0 then "represented by parts" else "without an outline in the geometry" end; $e)
          else
            (if $e.confidence < $below and $e.corrections == null then "unclassified" else class_of[$e.element_type] // "rest" end) as $class
            | shape($e; $class; $rings) as $shape
            | if $shape[3] < -1e8 or $shape[4] < -1e8 or $shape[5] > 1e8 or $shape[6] > 1e8
              then left_out("far from the other elements"; $e)
              else .shapes += [$shape] end
          end
        | if (.shapes | length) >= 2 * most.shapes
          then .shapes |= largest | .dropped += most.shapes else . end))
| map(if (.shapes | length) > most.shapes then .dropped += (.shapes | length) - most.shapes | .shapes |= largest else . end)
| sort_by([.storey == null, .elevation_m == null, .elevation_m])
| [.[].shapes[]] as $shapes
| if ($shapes | length) == 0
  then {drawn: 0, elements: (map(.elements) | add // 0), scale: null, extent: null, bar_m: null, storeys: []}
  else
    ($shapes | extent) as $box
    | ([($box.x1 - $box.x0) / paper.width, ($box.y1 - $box.y0) / paper.height] | max * 1000) as $least
    | (first(scales[] | select(. >= $least)) // scales[-1]) as $scale
    # Renderers of SVG keep about seven digits: coordinates of a map begin at the corner of the plan.
    | ([$box.x0, $box.y0 | fabs] | max > 10000) as $far
    | ($box + {far: $far, dx: (if $far then $box.x0 | floor else 0 end), dy: (if $far then $box.y0 | floor else 0 end)}) as $frame
    | map(storey($frame; $scale)) as $storeys
    | {
        drawn: ($storeys | map(.drawn) | add),
        elements: ($storeys | map(.elements) | add),
        scale: $scale,
        extent: ([$box.x0 - $frame.dx, $box.y0 - $frame.dy, $box.x1 - $frame.dx, $box.y1 - $frame.dy] | map(exact)),
        # About 40 mm on paper.
        bar_m: first((1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000, 100000, 1000000, 10000000, 100000000) | select(. >= $scale * 0.025)),
        storeys: $storeys
      }
  end
