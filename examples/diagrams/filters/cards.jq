# A card is eligible when its text asks for something that can be drawn. What it asks for is read out of the text: points with
# coordinates, graphs, triangles, right angles, lengths of sides, circles, the bars of a chart, and shapes that are only named.
def plain: gsub("−|–"; "-") | gsub("²"; "^2");
def found(regex): [match(regex; "g") | [.captures[].string]];
def number: tonumber;

def points: found("\\b([A-Z]) ?\\((-?[0-9]+(?:\\.[0-9]+)?), ?(-?[0-9]+(?:\\.[0-9]+)?)\\)")
  | map({what: "point", name: .[0], at: [(.[1] | number), (.[2] | number)]});

# y = 2x + 1 as coefficients, the constant first: [1, 2]
def coefficients: gsub(" "; "") | [match("[+-]?[0-9.]*(?:x\\^2|x)?"; "g").string | select(. != "")]
  | map(capture("^(?<sign>[+-]?)(?<size>[0-9.]*)(?<power>x\\^2|x)?$")
      | { power: ({"x^2": 2, "x": 1}[.power // ""] // 0),
          value: ((if .size == "" then 1 else (.size | number) end) * (if .sign == "-" then -1 else 1 end)) })
  | [range(3) as $power | [.[] | select(.power == $power).value] | add // 0];
def graphs: found("\\by = ((?:-? ?[0-9.]*x(?:\\^2)?|-? ?[0-9]+(?:\\.[0-9]+)?)(?: [+-] [0-9.]*x(?:\\^2)?| [+-] [0-9]+(?:\\.[0-9]+)?)*)")
  | map({what: "graph", name: "y = \(.[0])", coefficients: (.[0] | coefficients)});

def triangles: found("[Tt]riangle ([A-Z])([A-Z])([A-Z])\\b") | map({what: "triangle", name: add, corners: .});
def right_angles: found("right angle at ([A-Z])\\b") | map({what: "right_angle", name: "right angle at \(.[0])", at_point: .[0]});
def sides: found("\\b([A-Z])([A-Z]) = ([0-9]+(?:\\.[0-9]+)?) ?(mm|cm|m|km)\\b")
  | map({what: "side", name: "\(.[2]) \(.[3])", ends: [.[0], .[1]], length: (.[2] | number)});
def circles: found("circle with centre ([A-Z])[^.]*?radius ([0-9]+(?:\\.[0-9]+)?)")
  | map({what: "circle", name: "circle \(.[0])", centre: .[0], radius: (.[1] | number)});
def bars: if test("bar chart") then found("[:,] ([a-z][a-z ]*) ([0-9]+)\\b") | map({what: "bar", name: .[0], value: (.[1] | number)}) else [] end;
def others: found("\\b(ellipse|hyperbola|cube|pyramid|cylinder|pie chart|box plot)\\b") | map({what: "other", name: .[0]});

def kind: [.[].what] as $all
  | if any($all[]; . == "bar") then "statistics" elif any($all[]; . == "graph") then "algebra" else "geometry" end;

{ lessonTemplateId: .lesson.lessonTemplateId,
  courseId: .lesson.courseId,
  sow_order: .lesson.sow_order,
  cards: [ .lesson.cards[]
    | (.explainer | plain) as $text
    | (reduce ($text | points[], graphs[], triangles[], right_angles[], sides[], circles[], bars[], others[]) as $element ([];
        if any(.[]; .what == $element.what and .name == $element.name and .ends == $element.ends) then . else . + [$element] end)) as $elements
    | select($elements != [])
    | {card_id: .id, title, explainer, kind: ($elements | kind), elements: $elements} ] }
