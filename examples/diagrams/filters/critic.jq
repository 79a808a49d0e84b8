# The embedded critic: measures the picture that came, by what the render service says of it (boxes of labels and places of points,
# in pixels), and the description, against what the card asks for. Every number in the feedback is measured.
def plain: gsub("−|–"; "-") | gsub("²"; "^2");
def share($part; $whole): if $whole == 0 then 1 else $part / $whole end;
def sign: if . < 0 then -1 else 1 end;
def middle: [.x + .width / 2, .y + .height / 2];
def hits($other): .x < $other.x + $other.width and $other.x < .x + .width and .y < $other.y + $other.height and $other.y < .y + .height;
# Contrast with white, 1 to 21, by WCAG 2.2.
def channel: . / 255 | if . <= 0.04045 then . / 12.92 else pow((. + 0.055) / 1.055; 2.4) end;
def contrast: ascii_downcase | explode[1:] | map(if . >= 97 then . - 87 else . - 48 end)
  | [.[0] * 16 + .[1], .[2] * 16 + .[3], .[4] * 16 + .[5] | channel] | 1.05 / (0.2126 * .[0] + 0.7152 * .[1] + 0.0722 * .[2] + 0.05);

.rendered.metadata as $seen
| (.previous.critique.crossed // {}) as $crossed_before
| .diagram.diagram.elements as $drawn
| $seen.labels as $labels
| [ $labels[] | select(.x < 0 or .y < 0 or .x + .width > $seen.width or .y + .height > $seen.height) ] as $outside
| [ range($labels | length) as $i | range($i + 1; $labels | length) as $j | [$labels[$i], $labels[$j]] | select(. as [$a, $b] | $a | hits($b)) ] as $over
| [ $labels[] as $label | $seen.points[] | . as $point | select($label | hits({x: ($point.x - 4), y: ($point.y - 4), width: 8, height: 8})) | [$label, .] ] as $covers
| [ $labels[] | select((.crossed_by // []) != []) ] as $crossed
| ([$outside[].text, $over[][].text, $covers[][0].text, $crossed[].text] | unique) as $bad
# On which side of the point next to it a label stands: [1, 1] is right and above.
| def side: middle as [$x, $y]
    | ([$seen.points[] | [(.x - $x), (.y - $y)]] | min_by(.[0] * .[0] + .[1] * .[1]) // [-1, 1])
    | [-.[0], .[1]] | map(sign);

# What the card asks for and the description does not have, or has elsewhere.
def is_drawn: . as $asked
    | [$drawn[] | select(.name == $asked.name)]
    | any(.[]; if $asked.what == "point" then .type == "point" and ([.parents[0] - $asked.at[0], .parents[1] - $asked.at[1]] | map(fabs) | max) < 0.01
        elif $asked.what == "circle" then .type == "circle" and (.parents[1] | type != "number" or . == $asked.radius)
        elif $asked.what == "bar" then .type == "polygon" and ([.parents[] | arrays[1]] | max) == $asked.value
        else true end);
  [ $card.elements[] | select(.what != "side") | select(is_drawn | not) ] as $missing
# What can be drawn but not be read: no label in the picture names it.
| [$labels[].text | plain] as $texts
| def is_read: if .what == "point" then .name as $name | any($texts[]; . == $name or startswith($name + "("))
    elif .what == "triangle" then all(.corners[]; . as $name | any($texts[]; . == $name or startswith($name + "(")))
    elif .what == "circle" then .centre as $name | any($texts[]; . == $name or startswith($name + "("))
    elif .what == "right_angle" then true
    else (.name | plain) as $name | any($texts[]; . == $name) end;
  [ $card.elements[] | select(is_read | not) ] as $unread
| [ $drawn[] | . as $element | (.attributes // {}) | [.strokeColor, .fillColor] | map(strings | select(test("^#[0-9a-fA-F]{6}$"))) | unique[]
    | {name: ($element.name // $element.type), color: ., contrast: contrast, least: (if $element.type == "text" then 4.5 else 3 end)} ] as $colored
| [ $colored[] | select(.contrast < .least) ] as $pale

| { clarity: ([1 - 2 * share($bad | length; $labels | length), 0] | max),
    accuracy: (1 - share($missing | length; [$card.elements[] | select(.what != "side")] | length)),
    pedagogy: (1 - share($unread | length; $card.elements | length)),
    aesthetics: ([1 - 2 * share([$pale[].name] | unique | length; [$drawn[] | select(.type != "text" and .type != "point")] | length), 0] | max) }
| if $bad == [] then .clarity = 1 else . end | if $missing == [] then .accuracy = 1 else . end
| if $unread == [] then .pedagogy = 1 else . end | if $pale == [] then .aesthetics = 1 else . end
| map_values(. * 100 | round / 100)
# One weak dimension is not made up for by three good ones.
| . + { score: (([.clarity, .accuracy, .pedagogy, .aesthetics] | (add / 4 + min) / 2) * 100 | round / 100),
    feedback: ([ ($outside[] | "the label \(.text) leaves the picture"),
                 ($over[] | "the labels \(.[0].text) and \(.[1].text) lie over each other"),
                 ($covers[] | "the label \(.[0].text) covers the point \(.[1].name)"),
                 ($crossed[] | "the label \(.text) is crossed by \(.crossed_by | join(", "))"),
                 ($missing[] | "\(.name) is asked for and not drawn"),
                 ($unread[] | "no label says \(.name)"),
                 ($pale[] | "\(.name) in \(.color) has the contrast \(.contrast * 10 | round / 10) to 1, \(.least) is the least") ]
               | unique | if . == [] then "nothing to change" else join("; ") end),
    crossed: ([$crossed[] | {key: .text, value: .crossed_by}] | from_entries),
    low_contrast: ([$pale[].color] | unique),
    moves: (reduce (
        # To the other side first; then straight above or below the point if another line is in the way there, else below instead of above.
        ($crossed[] | $crossed_before[.text] as $before
          | {key: .text, value: (.crossed_by as $by | side | if $iteration == 1 then [-.[0], .[1]] elif $before != null and $before != $by then [0, .[1]] else [.[0], -.[1]] end)}),
        ($outside[] | side as [$sx, $sy] | {key: .text, value: [
            (if .x < 0 then 1 elif .x + .width > $seen.width then -1 else $sx end),
            (if .y < 0 then -1 elif .y + .height > $seen.height then 1 else $sy end)]}),
        ($covers[] | (.[0] | middle) as $from | {key: .[0].text, value: [($from[0] - .[1].x | sign), -($from[1] - .[1].y | sign)]}),
        ($over[] | (.[0] | middle) as $a | (.[1] | middle) as $b | [($b[0] - $a[0] | sign), -($b[1] - $a[1] | sign)] as [$sx, $sy]
          | {key: .[1].text, value: [$sx, $sy]}, {key: .[0].text, value: [-$sx, -$sy]})
      ) as $move ({}; .[$move.key] = $move.value)) }
