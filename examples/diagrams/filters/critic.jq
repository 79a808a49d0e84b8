# The embedded critic measures the picture, by what the render service says of it (boxes of labels and numbers,
# places of points, in pixels), and the description, against what the card asks for. Every number in the feedback is
# measured. Five faults are the teacher's, not the draughtsman's: unequal axes where a slope or an angle is taught,
# a length without its label, an angle without its label, no scale, no title. Each fault alone keeps a diagram below
# the threshold: a dimension with a fault is at most 0.6, and pedagogy at most 0.5.
def plain: gsub("−|–"; "-") | gsub("²"; "^2");
def share($part; $whole): if $whole == 0 then 0 else $part / $whole end;
def rest($faults; $all; $most): if $faults == 0 then 1 else $most * ([1 - share($faults; $all), 0] | max) end;
def sign: if . < 0 then -1 else 1 end;
def middle: [.x + .width / 2, .y + .height / 2];
# A rounded number, without the ".0" of a whole one.
def tenths: . * 10 | round | if . % 10 == 0 then . / 10 | round else . / 10 end;
def hundredths: . * 100 | round | if . % 100 == 0 then . / 100 | round else . / 100 end;
def hits($other):
  .x < $other.x + $other.width and $other.x < .x + .width and .y < $other.y + $other.height and $other.y < .y + .height;
# Contrast with white, 1 to 21, by WCAG 2.2.
def channel: . / 255 | if . <= 0.04045 then . / 12.92 else pow((. + 0.055) / 1.055; 2.4) end;
def contrast:
  ascii_downcase | explode[1:] | map(if . >= 97 then . - 87 else . - 48 end)
  | [.[0] * 16 + .[1], .[2] * 16 + .[3], .[4] * 16 + .[5] | channel]
  | 1.05 / (0.2126 * .[0] + 0.7152 * .[1] + 0.0722 * .[2] + 0.05);

.rendered.metadata as $seen
| (.previous.critique.crossed // {}) as $crossed_before
| .diagram.diagram as {$board, elements: $drawn}
| $seen.labels as $labels
| ($card.needs // []) as $needs

# Clarity: labels inside the picture, apart from each other, from points, from lines and from the numbers of the axes.
| [$labels[] | select(.x < 0 or .y < 0 or .x + .width > $seen.width or .y + .height > $seen.height)] as $outside
| [ range($labels | length) as $i | range($i + 1; $labels | length) as $j
    | [$labels[$i], $labels[$j]] | select(. as [$a, $b] | $a | hits($b)) ] as $over
| [ $labels[] as $label | $seen.points[] | . as $point
    | select($label | hits({x: ($point.x - 4), y: ($point.y - 4), width: 8, height: 8})) | [$label, .] ] as $covers
| [$labels[] | select((.crossed_by // []) != [])] as $crossed
| [$labels[] as $label | $seen.ticks[]? | select(. as $tick | $label | hits($tick)) | [$label, .]] as $on_ticks
| ([$outside[].text, $over[][].text, $covers[][0].text, $crossed[].text, $on_ticks[][0].text] | unique) as $bad

# Accuracy: what the card asks for is drawn, where the card says, and sides are as long as they are said to be.
| def is_drawn: . as $asked
    | [$drawn[] | select(.name == $asked.name)]
    | any(.[];
        if $asked.what == "point" then
          .type == "point" and ([.parents[0] - $asked.at[0], .parents[1] - $asked.at[1]] | map(fabs) | max) < 0.01
        elif $asked.what == "circle" then .type == "circle" and (.parents[1] | type != "number" or . == $asked.radius)
        elif $asked.what == "bar" then .type == "polygon" and ([.parents[] | arrays[1]] | max) == $asked.value
        else true end);
  [ $card.elements[] | select(.what | IN("side", "length", "angle", "step") | not) ] as $shapes
| [$shapes[] | select(is_drawn | not)] as $missing
| ([$drawn[] | select(.type == "point") | {key: .name, value: .parents}] | from_entries) as $at
| [ $card.elements[] | select(.what == "side") | $at[.ends[0]] as $a | $at[.ends[1]] as $b | select($a and $b)
    | .drawn = ([$a[0] - $b[0], $a[1] - $b[1]] | map(. * .) | add | sqrt) ] as $sides
| [ $sides[] | . as $side | $sides[0] as $first
    | .factor = share(.drawn * $first.length; .length * $first.drawn)
    | select(.factor - 1 | fabs > 0.02) ] as $wrong_sides

# Pedagogy.
| def is_name: test("^[A-Z]\\(");
  def says($text): plain as $label
    | ($text | plain) as $text
    | $label == $text or ($text | test("^[A-Z]$")) and ($label | startswith($text + "("))
      or ($label | is_name | not)
        and ([$label | match($text | gsub("(?<sign>[.^+*()])"; "\\\(.sign)"); "g")
          | select($label[.offset - 1:.offset] as $before | .offset == 0 or ($before | test("[0-9A-Za-z.]") | not))
          | select($label[.offset + .length:][:1] | test("[0-9A-Za-z]") | not)] != []);
  [ $card.elements[] | .what as $what | .name as $name | .reads[]
    | select(. as $text | any($labels[].text; says($text)) | not)
    | {what: $what, text: ., name: $name} ] as $unread
| any($labels[].text; plain == ($card.title | plain)) as $has_title
| (($seen.board.width // $seen.width) / ($board.boundingbox[2] - $board.boundingbox[0])) as $across
| (($seen.board.height // $seen.height) / ($board.boundingbox[1] - $board.boundingbox[3])) as $up
| def need($what): any($needs[]; . == $what);
  (need("equal_axes") and $board.keepaspectratio != true and ($across / $up - 1 | fabs > 0.02)) as $unequal
| any($card.elements[]; .what == "bar") as $is_chart
# The scale of a chart: numbers that are drawn at their own height.
| [ $drawn[] | select(.type == "text") | .parents as [$x, $y, $text]
    | select(($text | test("^[0-9.]+$")) and $x < 0 and ($text | tonumber) - $y == 0) ] as $numbers
| (if $is_chart then ($numbers | length) >= 3 else $board.axis == true end) as $has_scale
| [ if need("title") and ($has_title | not) then "no label says the title \"\($card.title)\"" else empty end,
    if $unequal then
      "the axes are unequal: 1 is \($across | tenths) pixels across and \($up | tenths) up, so slopes look wrong"
    else empty end,
    if need("scale") and ($has_scale | not) then
      (if $is_chart then "the chart has no scale: numbers beside its height are missing"
       else "the picture has no scale: axes with numbers are missing" end)
    else empty end,
    ($unread[] | if .what == "side" or .what == "length" then "the length \(.text) has no label"
      elif .what == "angle" then "\(.name) has no label: \(.text)"
      elif .text == .name then "no label says \(.text)"
      else "no label says \(.text), of \(.name)" end) ] as $taught

# Aesthetics: contrast.
| [ $drawn[] | . as $element
    | (.attributes // {}) | [.strokeColor, .fillColor] | map(strings | select(test("^#[0-9a-fA-F]{6}$"))) | unique[]
    | { name: ($element.name // $element.type), color: ., contrast: contrast,
        least: (if $element.type == "text" then 4.5 else 3 end) } ] as $colored
| [$colored[] | select(.contrast < .least)] as $pale

| { clarity: rest($bad | length; $labels | length; 0.6),
    accuracy: rest($missing + $wrong_sides | length; ($shapes | length) + ($sides | length); 0.6),
    pedagogy: rest($taught | length; ($card.elements | length) + ($needs | length); 0.5),
    aesthetics: rest([$pale[].name] | unique | length; $drawn | length; 0.6) }
| map_values(hundredths)
# One weak dimension is not made up for by three good ones.
| . + { score: (([.clarity, .accuracy, .pedagogy, .aesthetics] | (add / 4 + min) / 2) | hundredths),
    feedback: ([ ($outside[] | "the label \(.text) leaves the picture"),
                 ($over[] | "the labels \(.[0].text) and \(.[1].text) lie over each other"),
                 ($covers[] | "the label \(.[0].text) covers the point \(.[1].name)"),
                 ($crossed[] | "the label \(.text) is crossed by \(.crossed_by | join(", "))"),
                 ($on_ticks[] | "the label \(.[0].text) covers the number \(.[1].text) of an axis"),
                 ($missing[] | "\(.name) is asked for and not drawn"),
                 ($wrong_sides[] | "\(.ends | add) = \(.name) is drawn \(.factor | hundredths) times as long as it is"),
                 $taught[],
                 ($pale[]
                   | "\(.name) in \(.color) has the contrast \(.contrast | tenths) to 1, \(.least) is the least") ]
               | unique | if . == [] then "nothing to change" else join("; ") end),
    crossed: ([$crossed[] | {key: .text, value: .crossed_by}] | from_entries),
    low_contrast: ([$pale[].color] | unique),
    moves: (
      # The side of its point, or of the nearest point, that a label is on: [1, 1] is right and above.
      def side: middle as [$x, $y] | .text as $text
        | ([$seen.points[] | . as $point | [(.x - $x), (.y - $y),
            if $text | startswith($point.name + "(") then 0 else 1 end]]
          | min_by([.[2], .[0] * .[0] + .[1] * .[1]]) // [-1, 1] | .[:2])
        | [-.[0], .[1]] | map(sign);
      # To the other side first; then straight above or below the point if another line is in the way there, else below
      # instead of above.
      def away: $crossed_before[.text] as $before | .crossed_by as $by | side
        | if $iteration == 1 then [-.[0], .[1]]
          elif $before != null and $before != $by then [0, .[1]] else [.[0], -.[1]] end;
      reduce (
        ($crossed[] | {key: .text, value: away}),
        ($outside[] | side as [$sx, $sy] | {key: .text, value: [
            (if .x < 0 then 1 elif .x + .width > $seen.width then -1 else $sx end),
            (if .y < 0 then -1 elif .y + .height > $seen.height then 1 else $sy end)]}),
        ($covers[] | (.[0] | middle) as $from
          | {key: .[0].text, value: [($from[0] - .[1].x | sign), -($from[1] - .[1].y | sign)]}),
        ($on_ticks[] | (.[0] | side) as [$sx, $sy] | {key: .[0].text, value: [-$sx, -$sy]}),
        ($over[] | (.[0] | middle) as $a | (.[1] | middle) as $b
          | [($b[0] - $a[0] | sign), -($b[1] - $a[1] | sign)] as [$sx, $sy]
          | {key: .[1].text, value: [$sx, $sy]}, {key: .[0].text, value: [-$sx, -$sy]})
      ) as $move ({}; .[$move.key] = $move.value)) }
