# The embedded author: makes a JSXGraph description of what the card asks for. It knows points, graphs of first and second degree,
# triangles, right angles, lengths of sides, circles and bars; what else is asked for it leaves out, and the critic will say so.
# From round to round it keeps where labels stand and which colours are to be darker, and takes in what the critic said.
def sum(f): reduce f as $value (0; . + $value);
def sign: if . < 0 then -1 else 1 end;
def shown: tostring | gsub("-"; "−");
def nice: . * 1000 | round / 1000;

(.previous.diagram.kept // {corners: {}, darker: []}) as $before
| (.previous.critique // {}) as $said
| ($before.corners + ($said.moves // {})) as $corners
| ($before.darker + ($said.low_contrast // []) | unique) as $darker
| ($palette.colors // [{name: "blue", hex: "#005eb8", dark: "#003d7a"}]) as $colors
| ($patterns.defaults // {}) as $style
| def color($i): $colors[$i % ($colors | length)] | if .hex as $hex | any($darker[]; . == $hex) then .dark else .hex end;

$card.elements as $asked
| [$asked[] | select(.what == "side")] as $sides
| def length($a; $b): first($sides[] | select(.ends == [$a, $b] or .ends == [$b, $a]) | .length) // null;

# Corners of triangles without coordinates: two sides at a right angle, or three sides.
def placed: .corners as [$a, $b, $c]
  | first($asked[] | select(.what == "right_angle" and (.at_point as $p | any($a, $b, $c; . == $p))) | .at_point) as $right
  | [$a, $b, $c | select(. != $right)] as [$up, $across]
  | length($right; $up) as $height | length($right; $across) as $base
  | if $height and $base then [{name: $right, at: [0, 0]}, {name: $up, at: [0, $height]}, {name: $across, at: [$base, 0]}] else empty end;
def by_sides: .corners as [$a, $b, $c]
  | [length($a; $b), length($b; $c), length($a; $c)] as [$ab, $bc, $ac]
  | if $ab and $bc and $ac then (($ab * $ab + $ac * $ac - $bc * $bc) / (2 * $ab)) as $x
      | [{name: $a, at: [0, 0]}, {name: $b, at: [$ab, 0]}, {name: $c, at: [$x, ([$ac * $ac - $x * $x, 0] | max | sqrt | nice)]}]
    else [] end;

[$asked[] | select(.what == "point") | {name, at, given: true}] as $given
| ($given + [ $asked[] | select(.what == "triangle")
    | select([.corners[] as $corner | any($given[]; .name == $corner)] | all | not)
    | (first(placed) // by_sides)[] ]) as $points
| ([$points[] | {key: .name, value: .at}] | from_entries) as $at
| [$asked[] | select(.what == "graph")] as $graphs
| [$asked[] | select(.what == "bar")] as $bars
| def y($x): .coefficients as [$c, $b, $a] | $a * $x * $x + $b * $x + $c;

# The board: what is to be seen, and a margin; as wide as high where shapes must keep their form.
([$points[].at[0], ($asked[] | select(.what == "circle") | (($at[.centre] // [0, 0])[0] + .radius * (1, -1)))] | if . == [] then [-3, 3] else . end) as $xs
| [([($xs | min) - 1, if $graphs != [] then -0.5 else empty end] | min), ($xs | max) + 1] as [$from, $to]
| ([ $points[].at[1], ($asked[] | select(.what == "circle") | (($at[.centre] // [0, 0])[1] + .radius * (1, -1))),
     ($graphs[] | y($from), y($to)) ] | if . == [] then [-3, 3] else . end) as $ys
| (if $bars != [] then
    ([$bars[].value] | max) as $most | [-0.5, $most * 1.15, ($bars | length) + 0.3, $most * -0.16]
  else
    (if $graphs != [] then [$from, $to, ([$ys[], 0] | min), ([$ys[], 0] | max)] else [($xs | min), ($xs | max), ($ys | min), ($ys | max)] end) as [$l, $r, $b, $t]
    | ([$r - $l, 1] | max) as $wide | ([$t - $b, 1] | max) as $high
    | (if $style.keepaspectratio then [([$wide, $high] | max)] | [.[0], .[0]] else [$wide, $high] end) as [$w, $h]
    | [($l + $r) / 2 - 0.56 * $w, ($b + $t) / 2 + 0.56 * $h, ($l + $r) / 2 + 0.56 * $w, ($b + $t) / 2 - 0.56 * $h]
  end | map(nice)) as [$left, $top, $right, $bottom]
| ($right - $left) as $wide | ($top - $bottom) as $high
| def written($text; $corner; $color):
    ($corners[$text] // $corner) as [$sx, $sy]
    | { type: "text", name: "label \($text)",
        parents: [(.[0] + $sx * 0.017 * $wide | nice), (.[1] + $sy * (if $sx == 0 then 0.072 else 0.022 end) * $high | nice), $text],
        attributes: {anchorX: ({"-1": "right", "0": "middle", "1": "left"}[$sx | tostring]), strokeColor: $color} };

($points | if . == [] then [0, 0] else [sum(.[].at[0]) / length, sum(.[].at[1]) / length] end) as $middle
| { diagram: {
      board: { boundingbox: [$left, $top, $right, $bottom], axis: ($style.axis // false), grid: ($style.grid // false), keepaspectratio: ($style.keepaspectratio // false) },
      elements: (
        [ $points[] | {type: "point", name, parents: .at, attributes: {size: 4, fillColor: "#1a1a2e", strokeColor: "#1a1a2e", withLabel: false}} ]
        + [ $graphs | to_entries[] | .key as $i | .value as $graph | color($i) as $color
            | ($graph.coefficients | to_entries | map(select(.value != 0) | "\(.value)\(["", "*x", "*x^2"][.key])") | reverse
                | if . == [] then "0" else join(" + ") end | gsub("\\+ -"; "- ")) as $term
            | {type: "functiongraph", name: $graph.name, parents: [$term], attributes: {strokeColor: $color, strokeWidth: 3}},
              ( [range(0; 21) as $n | ($from + ($to - $from) * $n / 20) as $x | [$x, ($graph | y($x))] | select(.[1] < $top - 0.08 * $high and .[1] > $bottom + 0.08 * $high)]
                | last // [$from, 0]
                | written($graph.name | gsub("\\^2"; "²") | gsub("-"; "−"); [-1, 1]; $color) ) ]
        + [ $asked[] | select(.what == "triangle") | select(all(.corners[]; $at[.] != null))
            | {type: "polygon", name, parents: .corners, attributes: {strokeColor: color(0), strokeWidth: 3, fillColor: color(0), fillOpacity: 0.12}} ]
        + [ $asked[] | select(.what == "circle") | select($at[.centre] != null)
            | {type: "circle", name, parents: [.centre, .radius], attributes: {strokeColor: color(0), strokeWidth: 3}} ]
        + [ $asked[] | select(.what == "circle") | .centre as $o | .radius as $r
            | $points[] | select($at[$o] != null and .name != $o)
            | select((((.at[0] - $at[$o][0]) | . * .) + ((.at[1] - $at[$o][1]) | . * .) | sqrt) - $r | fabs < 0.01)
            | {type: "segment", name: "radius \($o)\(.name)", parents: [$o, .name], attributes: {strokeColor: color(1), strokeWidth: 2}},
              (.name as $touch | .at as $p | $points[] | select(.name != $touch and .name != $o)
                | select(((.at[0] - $p[0]) * ($at[$o][0] - $p[0]) + (.at[1] - $p[1]) * ($at[$o][1] - $p[1])) | fabs < 0.01)
                | {type: "line", name: "tangent at \($touch)", parents: [$touch, .name], attributes: {strokeColor: color(1), strokeWidth: 2}},
                  {type: "nonreflexangle", name: "right angle at \($touch)", parents: [$o, $touch, .name], attributes: {radius: ($wide / 25 | nice), strokeColor: color(1)}}) ]
        + [ $asked[] | select(.what == "right_angle") | .at_point as $p
            | first($asked[] | select(.what == "triangle") | select(any(.corners[]; . == $p)) | [.corners[] | select(. != $p)]) as [$a, $b]
            | select($at[$p] != null and $at[$a] != null and $at[$b] != null)
            | {type: "nonreflexangle", name, parents: [$a, $p, $b], attributes: {radius: ($wide / 20 | nice), strokeColor: color(1), fillColor: color(1), fillOpacity: 0.15}} ]
        + [ $sides[] | select($at[.ends[0]] != null and $at[.ends[1]] != null)
            | [$at[.ends[0]], $at[.ends[1]]] as [$a, $b] | [($a[0] + $b[0]) / 2, ($a[1] + $b[1]) / 2] as $half
            | .name as $name | $half | written($name; [($half[0] - $middle[0] | sign), ($half[1] - $middle[1] | sign)]; "#1a1a2e") ]
        + [ $points[] | . as $point | (if .given then "\(.name)(\(.at[0] | shown), \(.at[1] | shown))" else .name end) as $text
            | .at | written($text; (if $point.given then [1, 1] else [($point.at[0] - $middle[0] | sign), ($point.at[1] - $middle[1] | sign)] end); "#1a1a2e") ]
        + (if $bars == [] then [] else
            [ $bars | to_entries[] | .key as $i | .value as $bar
              | {type: "polygon", name: $bar.name, parents: [[$i + 0.2, 0], [$i + 0.2, $bar.value], [$i + 0.8, $bar.value], [$i + 0.8, 0]],
                 attributes: {strokeColor: color($i), fillColor: color($i), fillOpacity: 0.85}},
                {type: "text", name: "label \($bar.name)", parents: [$i + 0.5, ((if ($corners[$bar.name] // [1, 1])[1] < 0 then -0.095 else -0.04 end) * $high | nice), $bar.name], attributes: {anchorX: "middle", strokeColor: "#1a1a2e"}},
                {type: "text", name: "value of \($bar.name)", parents: [$i + 0.5, ($bar.value + 0.025 * $high | nice), "\($bar.value)"], attributes: {anchorX: "middle", strokeColor: "#1a1a2e"}} ]
            + [ {type: "segment", name: "base", parents: [[0, 0], [($bars | length), 0]], attributes: {strokeColor: "#1a1a2e"}},
                {type: "arrow", name: "height", parents: [[0, 0], [0, $top * 0.97 | nice]], attributes: {strokeColor: "#1a1a2e"}} ]
          end) ) },
    kept: {corners: $corners, darker: $darker} }
