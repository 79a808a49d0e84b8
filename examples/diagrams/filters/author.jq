# The embedded author makes a JSXGraph description of what the card asks for. It knows points, graphs of first and
# second degree, lines, steps, triangles, angles, lengths of sides, circles, sectors and bars. It leaves out what else
# is asked for, and the critic says so. From iteration to iteration it keeps where labels are and which colours must
# be darker.
def sum(f): reduce f as $value (0; . + $value);
def sign: if . < -0.001 then -1 elif . > 0.001 then 1 else 0 end;
def shown: tostring | gsub("-"; "−");
def nice: . * 1000 | round / 1000;
def minus($other): [.[0] - $other[0], .[1] - $other[1]];
def half($other): [(.[0] + $other[0]) / 2, (.[1] + $other[1]) / 2];
def distance($other): minus($other) | map(. * .) | add | sqrt;
def radians: . * 3.141592653589793 / 180;
def ink: "#1a1a2e";

(.previous.diagram.kept // {corners: {}, darker: []}) as $before
| (.previous.critique // {}) as $said
| ($before.corners + ($said.moves // {})) as $corners
| ($before.darker + ($said.low_contrast // []) | unique) as $darker
| ($palette.colors // [{name: "blue", hex: "#005eb8", dark: "#003d7a"}]) as $colors
| ($patterns.defaults // {}) as $style
| def color($i):
    $colors[$i % ($colors | length)] | if .hex as $hex | any($darker[]; . == $hex) then .dark else .hex end;

$card.elements as $asked
| ($card.needs // []) as $needs
| [$asked[] | select(.what == "side")] as $sides
| [$asked[] | select(.what == "angle" or .what == "right_angle")] as $angles

# A triangle without coordinates is completed by the cosine and sine rules, and placed with its right angle, or its
# first corner, at the origin.
| def length_of($a; $b): first($sides[] | select((.ends | sort) == ([$a, $b] | sort)).length) // null;
  def angle_of($p): first($angles[] | select(.at_point == $p).size) // null;
  def completed:
    def third: [.angles[] | values] as $known
      | if ($known | length) == 2 then .angles |= map(. // 180 - ($known | add)) else . end;
    def by_sine: . as {$sides, $angles}
      | ([range(3) | select($sides[.] and $angles[.]) | $sides[.] / ($angles[.] | radians | sin)] | first) as $ratio
      | if $ratio then .sides |= [range(3) as $i | .[$i] // ($angles[$i] // null
            | if . then $ratio * (radians | sin) else null end)] else . end;
    def by_cosine: . as {$sides, $angles}
      | .sides |= [range(3) as $i | [range(3) | select(. != $i) | $sides[.]] as [$b, $c]
          | .[$i] // if $b and $c and $angles[$i]
              then ($b * $b + $c * $c - 2 * $b * $c * ($angles[$i] | radians | cos)) | sqrt else null end];
    def by_hypotenuse: . as {$sides, $angles}
      | ([range(3) | select($angles[.] == 90)] | first) as $right
      | if $right and $sides[$right]
        then .sides |= [range(3) as $i | [range(3) | select(. != $right and . != $i) | $sides[.] | values] as $leg
          | .[$i] // if ($leg | length) == 1
              then $sides[$right] * $sides[$right] - $leg[0] * $leg[0] | sqrt else null end]
        else . end;
    third | by_cosine | by_hypotenuse | by_sine;
  # Each side lies opposite the corner with its number.
  def placed:
    .corners as [$a, $b, $c]
    | {angles: [$a, $b, $c | angle_of(.)], sides: [length_of($b; $c), length_of($a; $c), length_of($a; $b)]}
    | completed
    | (.angles | index(90)) as $right
    | .sides as $long
    | if any($long[]; . == null) then []
      elif $right then
        [$a, $b, $c] as $names | [range(3) | select(. != $right)] as [$up, $across]
        | [ {name: $names[$right], at: [0, 0]}, {name: $names[$up], at: [0, ($long[$across] | nice)]},
            {name: $names[$across], at: [($long[$up] | nice), 0]} ]
      else
        (($long[2] * $long[2] + $long[1] * $long[1] - $long[0] * $long[0]) / (2 * $long[2])) as $x
        | [ {name: $a, at: [0, 0]}, {name: $b, at: [($long[2] | nice), 0]},
            {name: $c, at: [($x | nice), ([$long[1] * $long[1] - $x * $x, 0] | max | sqrt | nice)]} ]
      end;

[$asked[] | select(.what == "point") | {name, at, given: true}] as $given
| [$asked[] | select(.what == "circle")] as $circles
| [$asked[] | select(.what == "triangle")] as $triangles
| ($given
    + [ $triangles[] | select([.corners[] as $corner | any($given[]; .name == $corner)] | all | not) | placed[] ]
    + [ $circles[] | select(.centre as $o | any($given[]; .name == $o) | not)
        | {name: .centre, at: [0, 0]} ]) as $points
| ([$points[] | {key: .name, value: .at}] | from_entries) as $at
| [$asked[] | select(.what == "graph")] as $graphs
| [$asked[] | select(.what == "bar")] as $bars
| def y($x): .coefficients as [$c, $b, $a] | $a * $x * $x + $b * $x + $c;
  def turning: .coefficients as [$c, $b, $a] | select($a != 0) | -$b / (2 * $a);
  def roots: .coefficients as [$c, $b, $a] | select($a != 0) | ($b * $b - 4 * $a * $c) | select(. >= 0)
    | (-$b + (1, -1) * sqrt) / (2 * $a);

# The board: what is to be seen, and a margin. Where shapes must keep their form it has the proportions of the picture
# below its title.
($needs | any(.[]; . == "equal_axes") or ($style.keepaspectratio // false)) as $equal
| (($given != [] or $graphs != []) and $bars == []) as $axis
| (if $axis then [0] else [] end) as $origin
| [ $points[].at[0], $origin[], ($graphs[] | turning, roots),
    ($circles[] | $at[.centre][0] + .radius * (1, -1)) ] as $xs
| [($xs + [0] | min) - 0.5, ($xs + [0] | max) + 1] as [$from, $to]
| [ $points[].at[1], $origin[], ($circles[] | $at[.centre][1] + .radius * (1, -1)),
    ($graphs[] | y($from), y($to), (turning as $x | y($x))) ] as $ys
| (if $bars != [] then
    ([$bars[].value] | max) as $most | [-0.6, $most * 1.25, ($bars | length) + 0.3, $most * -0.2]
  else
    (if $graphs != [] then [$from, $to] elif $xs == [] then [-3, 3] else [($xs | min), ($xs | max)] end) as [$l, $r]
    | (if $ys == [] then [-3, 3] else [($ys | min), ($ys | max)] end) as [$b, $t]
    | ([$r - $l, 1] | max) as $wide | ([$t - $b, 1] | max) as $high
    | (if $equal then [([$wide, $high] | max)] | [.[0] * 15 / 14, .[0]] else [$wide, $high] end) as [$w, $h]
    | [($l + $r) / 2 - 0.62 * $w, ($b + $t) / 2 + 0.66 * $h, ($l + $r) / 2 + 0.62 * $w, ($b + $t) / 2 - 0.58 * $h]
  end | map(nice)) as [$left, $top, $right, $bottom]
| ($right - $left) as $wide | ($top - $bottom) as $high
| def text($name; $x; $y; $text; $more):
    {type: "text", name: $name, parents: [($x | nice), ($y | nice), $text], attributes: ({strokeColor: ink} + $more)};
  # A text beside a place: `corner` is the side, [1, 1] right and above.
  def written($text; $corner; $color):
    ($corners[$text] // $corner) as [$sx, $sy]
    | text("label \($text)"; .[0] + $sx * (if $sy == 0 then 0.026 else 0.017 end) * $wide;
        .[1] + $sy * (if $sx == 0 then 0.036 else 0.027 end) * $high; $text;
        {anchorX: ({"-1": "right", "0": "middle", "1": "left"}[$sx | tostring]), strokeColor: $color});
  def line($type; $name; $ends; $more):
    {type: $type, name: $name, parents: $ends, attributes: ({strokeColor: ink, strokeWidth: 2} + $more)};

($points | if . == [] then [0, 0] else [sum(.[].at[0]) / length, sum(.[].at[1]) / length] end) as $middle
| def outward: minus($middle) | map(sign);

  def axis_names:
    if $axis then
      [ text("name of the x-axis"; $right - 0.02 * $wide; 0.035 * $high; "x"; {anchorX: "right"}),
        text("name of the y-axis"; 0.02 * $wide; $top - 0.03 * $high; "y"; {anchorX: "left"}) ]
    else [] end;

  def drawn_points:
    [ $points[] | {type: "point", name, parents: .at,
        attributes: {size: 4, fillColor: ink, strokeColor: ink, withLabel: false}} ];

  # The term of a graph is near its right end.
  def drawn_graphs:
    [ $graphs | to_entries[] | .key as $i | .value as $graph | color($i) as $color
      | ($graph.coefficients | to_entries | map(select(.value != 0) | "\(.value)\(["", "*x", "*x^2"][.key])") | reverse
          | if . == [] then "0" else join(" + ") end | gsub("\\+ -"; "- ")) as $term
      | [ range(0; 201) as $n | ($left + $wide * $n / 200) as $x | [$x, ($graph | y($x))]
          | select(.[1] < $top and .[1] > $bottom) ] as $seen
      | {type: "functiongraph", name: $graph.name, attributes: {strokeColor: $color, strokeWidth: 3},
         parents: [$term, ($seen[0][0] // $left | nice), ($seen[-1][0] // $right | nice)]},
        ( ([$seen[] | select(.[1] < $top - 0.08 * $high and .[1] > $bottom + 0.06 * $high)] | last // [$from, 0])
          # Above a line that falls, a text to the right of it is clear of it, and otherwise one to the left.
          | (.[0] as $x | if ($graph | y($x + 0.01)) < ($graph | y($x)) then [1, 1] else [-1, 1] end) as $corner
          | written($graph.name | gsub("\\^2"; "²") | gsub("-"; "−"); $corner; $color) ) ];

  def drawn_lines:
    [ $asked[] | select(.what == "line") | select($at[.ends[0]] and $at[.ends[1]])
      | line("line"; .name; .ends; {strokeColor: color(0), strokeWidth: 3}) ];

  def drawn_steps:
    [ $asked[] | select(.what == "step") | select($at[.ends[0]] and $at[.ends[1]])
      | $at[.ends[0]] as $a | $at[.ends[1]] as $b | [$b[0], $a[1]] as $corner | .reads as [$across, $up]
      | line("segment"; "\(.name), across"; [.ends[0], $corner]; {dash: 2, strokeColor: color(1)}),
        line("segment"; "\(.name), up"; [$corner, .ends[1]]; {dash: 2, strokeColor: color(1)}),
        ($a | half($corner) | written($across; [0, ($a[1] - $b[1] | sign)]; color(1))),
        ($corner | half($b) | written($up; [($b[0] - $a[0] | sign), 0]; color(1))) ];

  def drawn_triangles:
    [ $triangles[] | select(all(.corners[]; $at[.] != null))
      | {type: "polygon", name, parents: .corners,
         attributes: {strokeColor: color(0), strokeWidth: 3, fillColor: color(0), fillOpacity: 0.12}} ];

  # A circle shows its radius: to a point that lies on it, or to the right.
  def drawn_circles:
    [ $circles[] | select($at[.centre] != null)
      | .centre as $o | .radius as $r | $at[$o] as $c | "r = \($r)\(.unit)" as $size
      | [$points[] | select(.name != $o and (.at | distance($c) - $r | fabs < 0.01))] as $on
      | ($on[0].at // [$c[0] + $r, $c[1]]) as $end
      | {type: "circle", name, parents: [$o, $r], attributes: {strokeColor: color(0), strokeWidth: 3}},
        line("segment"; "radius \($o)\($on[0].name // "")"; [$o, ($on[0].name // $end)]; {strokeColor: color(1)}),
        ($c | half($end) | written($size; [0, 1]; color(1))),
        ( $on[] | .name as $touch | .at as $p | $points[] | select(.name != $touch and .name != $o)
          | select([.at | minus($p)] + [$c | minus($p)]
              | .[0][0] * .[1][0] + .[0][1] * .[1][1] | fabs < 0.01)
          | line("line"; "tangent at \($touch)"; [$touch, .name]; {strokeColor: color(1)}),
            {type: "nonreflexangle", name: "right angle at \($touch)", parents: [$o, $touch, .name],
             attributes: {radius: ($wide / 25 | nice), strokeColor: color(1)}} ) ];

  # A sector begins at the radius to the right.
  def drawn_sectors:
    [ $asked[] | select(.what == "sector") | .centre as $o | .size as $size | $at[$o] as $c | select($c)
      | first($circles[] | select(.centre == $o).radius) as $r
      | def at($angle; $far): [$c[0] + $far * ($angle | radians | cos), $c[1] + $far * ($angle | radians | sin)];
        line("segment"; "radius at \($size)°"; [$o, (at($size; $r) | map(nice))]; {strokeColor: color(1)}),
        {type: "angle", name, parents: [[$c[0] + $r, $c[1]], $o, (at($size; $r) | map(nice))],
         attributes: {radius: $r, strokeColor: color(0), fillColor: color(0), fillOpacity: 0.2}},
        (at($size / 2; 0.35 * $r) as $place
          | text("label \(.reads[0])"; $place[0]; $place[1]; .reads[0]; {anchorX: "middle"})) ];

  def drawn_angles:
    [ $angles[] | .at_point as $p
      | first($triangles[] | select(any(.corners[]; . == $p)) | .corners - [$p]) as [$a, $b]
      | select($at[$p] and $at[$a] and $at[$b])
      | ($wide / (if .what == "angle" then 10 else 20 end)) as $radius
      | {type: "nonreflexangle", name, parents: [$a, $p, $b],
         attributes: {radius: ($radius | nice), strokeColor: color(1), fillColor: color(1), fillOpacity: 0.15}},
        ( select(.what == "angle")
          | ([$a, $b | . as $end | ($at[$p] | distance($at[$end])) as $long
              | $at[$end] | minus($at[$p]) | map(. / $long)] | [.[0][0] + .[1][0], .[0][1] + .[1][1]]) as $way
          | ($way | map(. * .) | add | sqrt) as $long
          | (1.45 + ([40 - .size, 0] | max) / 25) as $far
          | text("label \(.reads[0]) at \($p)"; $at[$p][0] + $far * $radius * $way[0] / $long;
              $at[$p][1] + $far * $radius * $way[1] / $long; .reads[0]; {anchorX: "middle"}) ) ];

  def side_labels:
    [ $sides[] | select($at[.ends[0]] != null and $at[.ends[1]] != null)
      | $at[.ends[0]] as $a | $at[.ends[1]] as $b | ($a | half($b)) as $half
      | ($b | minus($a)) as [$dx, $dy]
      # At a right angle to its side, away from the middle.
      | ([-$dy, $dx] | if .[0] * ($half[0] - $middle[0]) + .[1] * ($half[1] - $middle[1]) < 0
          then map(-.) else . end) as $way
      | .name as $name | $half | written($name; ($way | map(sign)); ink) ];

  def point_labels:
    [ $points[] | . as $point
      | (if .name | startswith("(") then .name | shown
          elif .given then "\(.name)(\(.at[0] | shown), \(.at[1] | shown))" else .name end) as $text
      | ([$graphs[] | select(y($point.at[0]) - $point.at[1] | fabs < 0.01)] | length) as $meeting
      | (if $meeting > 1 then [1, 0] elif .given then [1, 1] else .at | outward end) as $corner
      | .at | written($text; $corner; ink) ];

  # Bars with a scale at the left, which begins at 0.
  def drawn_bars:
    if $bars == [] then [] else
      ([$bars[].value] | max) as $most
      | first((1, 10, 100, 1000, 10000) as $ten | (1, 2, 5) | . * $ten | select($most / . <= 8)) as $step
      | [ $bars | to_entries[] | .key as $i | .value as $bar
          | {type: "polygon", name: $bar.name,
             parents: [[$i + 0.2, 0], [$i + 0.2, $bar.value], [$i + 0.8, $bar.value], [$i + 0.8, 0]],
             attributes: {strokeColor: color($i), fillColor: color($i), fillOpacity: 0.85}},
            text("label \($bar.name)"; $i + 0.5;
              (if ($corners[$bar.name] // [1, 1])[1] < 0 then -0.095 else -0.04 end) * $high;
              $bar.name; {anchorX: "middle"}),
            text("value of \($bar.name)"; $i + 0.5; $bar.value + 0.025 * $high;
              "\($bar.value)"; {anchorX: "middle"}) ]
        + [ range(0; $most / $step + 1 | floor) | . * $step
            | line("segment"; "mark \(.)"; [[-0.05, .], [0, .]]; {}),
              text("scale \(.)"; -0.09; .; "\(.)"; {anchorX: "right"}) ]
        + [ text("name of the scale"; -0.5; $top - 0.02 * $high;
              (if $bars[0].of then "number of \($bars[0].of)" else "frequency" end); {anchorX: "left"}),
            line("segment"; "base"; [[0, 0], [($bars | length), 0]]; {}),
            line("arrow"; "height"; [[0, 0], [0, ($top - 0.06 * $high | nice)]]; {}) ]
    end;

{ diagram: {
    board: { title: $card.title, boundingbox: [$left, $top, $right, $bottom], axis: $axis, grid: $axis,
      keepaspectratio: ($equal and $bars == []) },
    elements: (drawn_points + drawn_graphs + drawn_lines + drawn_steps + drawn_triangles + drawn_circles + drawn_sectors
      + drawn_angles
      + axis_names + side_labels + point_labels + drawn_bars
      # a description is never empty: the critic says what is not drawn
      | if . == [] then [text("note"; 0; 0; "not drawn: " + ([$asked[].name] | join(", ")); {anchorX: "middle"})]
        else . end) },
  kept: {corners: $corners, darker: $darker} }
