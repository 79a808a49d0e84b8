# A card is eligible if its text asks for something that can be drawn. What it asks for is read from the text:
# points with coordinates, graphs, steps along a line, triangles, lengths, angles, circles, the bars of a chart, and
# shapes that are only named. `reads` of an element is what labels of the picture must say; `needs` of a card is
# what its topic asks of a picture.
def plain: gsub("−|–"; "-") | gsub("²"; "^2");
def found(regex): [match(regex; "g") | [.captures[].string]];
def number: tonumber;

def points:
  found("\\b([A-Z]) ?\\((-?[0-9]+(?:\\.[0-9]+)?), ?(-?[0-9]+(?:\\.[0-9]+)?)\\)")
  | map({what: "point", name: .[0], at: [(.[1] | number), (.[2] | number)], reads: [.[0]]});

# Points without a name, as in "plot (0, 1)" or, in a table of values, "when x = 2, y = 5".
def nameless($points):
  (found("(?:^|[^A-Za-z0-9])\\((-?[0-9]+(?:\\.[0-9]+)?), ?(-?[0-9]+(?:\\.[0-9]+)?)\\)")
    + found("\\bx = (-?[0-9]+(?:\\.[0-9]+)?),? (?:then )?y = (-?[0-9]+(?:\\.[0-9]+)?)\\b"))
  | map([.[0], .[1] | number] as $at | "(\($at[0]), \($at[1]))" as $name
      | select(any($points[]; .at == $at) | not) | {what: "point", name: $name, at: $at, reads: [$name]});

# y = 2x + 1 as coefficients, the constant first: [1, 2]
def coefficients:
  gsub(" "; "") | [match("[+-]?[0-9.]*(?:x\\^2|x)?"; "g").string | select(. != "")]
  | map(capture("^(?<sign>[+-]?)(?<size>[0-9.]*)(?<power>x\\^2|x)?$")
      | { power: ({"x^2": 2, "x": 1}[.power // ""] // 0),
          value: ((if .size == "" then 1 else (.size | number) end) * (if .sign == "-" then -1 else 1 end)) })
  | [range(3) as $power | [.[] | select(.power == $power).value] | add // 0];
def term: "-? ?[0-9.]*x(?:\\^2)?|-? ?[0-9]+(?:\\.[0-9]+)?";
# A number alone is a graph only if the text says so: in "when x = 2, y = 5" and "y = 3(4) - 1" it is none.
def graphs:
  found("((?:(?:lines?|graphs?|curves?|graph of) )?)\\by = ((?:" + term
    + ")(?: [+-] [0-9.]*x(?:\\^2)?| [+-] [0-9]+(?:\\.[0-9]+)?)*)(\\(?)")
  | map(select((.[1] | test("x")) or (.[0] != "" and .[2] == "")) | .[1]
      | {what: "graph", name: "y = \(.)", coefficients: coefficients, reads: ["y = \(.)"]});
# The line through two points.
def joined:
  found("\\bline [^.]{0,20}?\\b(?:joining|through|between|from) (?:the points? )?([A-Z])(?: ?\\([^)]*\\))?"
    + " (?:and|to) ([A-Z])\\b")
  | map({what: "line", name: "line \(add)", ends: ., reads: []});

# The step between two points that a gradient is read from.
def steps:
  found("from ([A-Z]) to ([A-Z])[^.]*? ([0-9.]+) to the (right|left) and ([0-9.]+) (up|down)")
  | map({ what: "step", name: "step from \(.[0]) to \(.[1])", ends: .[:2], reads: [.[2], .[4]],
          by: [(.[2] | number) * (if .[3] == "left" then -1 else 1 end),
               (.[4] | number) * (if .[5] == "down" then -1 else 1 end)] });

def triangles:
  found("[Tt]riangle ([A-Z])([A-Z])([A-Z])\\b") | map({what: "triangle", name: add, corners: ., reads: .});
def right_angles:
  found("right[- ]angled? at ([A-Z])\\b")
  | map({what: "right_angle", name: "right angle at \(.[0])", at_point: .[0], size: 90, reads: []});
def angles:
  found("[Aa]ngle ([A-Z])([A-Z])([A-Z]) (?:=|is|of) ([0-9]+(?:\\.[0-9]+)?)°")
  | map({what: "angle", name: "angle \(.[:3] | add)", at_point: .[1], size: (.[3] | number), reads: ["\(.[3])°"]});
def angles_at:
  (found("[Aa]ngle (?:at )?([A-Z]) (?:=|is|of) ([0-9]+(?:\\.[0-9]+)?)°")
    + (found("angle of ([0-9]+(?:\\.[0-9]+)?)° at ([A-Z])\\b") | map([.[1], .[0]])))
  | map({what: "angle", name: "angle at \(.[0])", at_point: .[0], size: (.[1] | number), reads: ["\(.[1])°"]});
def sides:
  found("\\b([A-Z])([A-Z]) (?:=|is) ([0-9]+(?:\\.[0-9]+)?) ?(mm|cm|m|km)\\b")
  | map("\(.[2]) \(.[3])" as $name
      | {what: "side", name: $name, ends: .[:2], length: (.[2] | number), reads: [$name]});
def circles:
  found("circle with centre ([A-Z])[^.]*?radius ([0-9]+(?:\\.[0-9]+)?)( ?(?:mm|cm|m|km)\\b)?")
  | map({ what: "circle", name: "circle \(.[0])", centre: .[0], radius: (.[1] | number), unit: (.[2] // ""),
          reads: [.[0], "\(.[1])\(.[2] // "")"] });
# A sector of the circle that the text names.
def sectors($circles):
  found("\\bsector\\b[^.]*? angle (?:of )?([0-9]+(?:\\.[0-9]+)?)°")
  | map($circles[0].centre as $o | select($o)
      | {what: "sector", name: "sector of \(.[0])°", centre: $o, size: (.[0] | number), reads: ["\(.[0])°"]});
# Walking 14, bus 9 and car 5: commas, colons and full stops separate the bars.
def bars:
  if test("bar chart") then
    (found("asked [0-9]+ ([a-z]+)")[0][0] // null) as $who
    | [ splits("[:;,.] |\\.$| and ") | capture("^(?<name>[A-Za-z][A-Za-z ]*?) \\(?(?<value>[0-9]+)\\)?$")
        | select(.name | test("^In$") | not) ]
    | map({what: "bar", name, value: (.value | number), of: $who, reads: [.name, .value]})
  else [] end;
def others:
  found("\\b(ellipse|hyperbola|cube|pyramid|cylinder|pie chart|box plot|vector|number line)\\b")
  | map({what: "other", name: .[0], reads: [.[0]]});

# A length that the text gives without the names of its ends, such as "the ladder is 5 m long": the third side of a
# right-angled triangle where it fits, and otherwise a length that some label must say.
def same($a; $b): $a - $b | fabs < 0.01;
def lengths($elements):
  found("\\bis ([0-9]+(?:\\.[0-9]+)?) ?(mm|cm|m|km) long\\b")
  | map((.[0] | number) as $long | "\(.[0]) \(.[1])" as $name
      | [ $elements[] | select(.what == "triangle") | .corners as $corners
          | $elements[] | select(.what == "right_angle") | .at_point as $right
          | select(any($corners[]; . == $right))
          | ($corners - [$right]) as $ends
          | [ $ends[] as $end | $elements[]
              | select(.what == "side" and (.ends | sort) == ([$right, $end] | sort)).length ] as $legs
          | select(($legs | length) == 2 and same($legs | map(. * .) | add | sqrt; $long))
          | $ends ][0] as $ends
      | if $ends then {what: "side", name: $name, ends: $ends, length: $long, reads: [$name]}
        else {what: "length", name: $name, reads: [$name]} end);

def kind($text): map(.what) as $all
  | if any($all[]; . == "bar") then "statistics"
    elif any(.[]; .what == "graph" and .coefficients[2] != 0) then "algebra"
    elif any($all[]; IN("graph", "line")) then "straight_lines"
    elif any($all[]; . == "circle") then "circles"
    elif any($all[]; . == "angle") then "trigonometry"
    elif any(.[]; .name == "vector") then "vectors"
    elif any(.[]; .name == "number line") then "number_lines"
    else "geometry" end;

# A title always; a scale where something can be read off axes; equal axes where slopes, angles or shapes are taught.
def needs($text): map(.what) as $all
  | ["title",
     if any($all[]; IN("graph", "line", "point", "bar")) then "scale" else empty end,
     if any($all[]; IN("triangle", "circle", "right_angle", "angle", "step"))
       or ($text | test("\\b(gradient|slope|steep|angle|perpendicular|tangent)"; "i"))
     then "equal_axes" else empty end];

{ lessonTemplateId: .lesson.lessonTemplateId,
  courseId: .lesson.courseId,
  sow_order: .lesson.sow_order,
  cards: [ .lesson.cards[]
    | (.explainer | plain) as $text
    | ($text | points) as $points | ($text | graphs) as $graphs | ($text | circles) as $circles
    | ($text | $points + nameless($points) + $graphs + (if $graphs == [] then joined else [] end) + triangles
        + right_angles + angles + angles_at + sides + $circles + sectors($circles) + bars + others + steps) as $all
    | (reduce ($all[], (if $all == [] then empty else $text | lengths($all)[] end)) as $element ([];
        if any(.[]; .what == $element.what and .name == $element.name and .ends == $element.ends) then .
        else . + [$element] end)) as $elements
    | select($elements != [])
    | { card_id: .id, title, explainer, kind: ($elements | kind($text)), needs: ($elements | needs($text)),
        elements: $elements } ] }
