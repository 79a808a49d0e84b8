# The embedded reader. A topic is a heading of the form "Week 3: Determinants" (Unit, Lecture, Chapter, Module, Topic), its evidence what stands
# under it up to the next heading. A heading that begins with a course's id says whose topics follow. What stands after the heading
# "Midterm" comes after the midterm, and is left out.
def heading: capture("^(?<kind>Week|Unit|Lecture|Chapter|Module|Topic)( (?<number>[0-9]+))? ?[:.–—-] ?(?<topic>\\p{Lu}.{1,68}[^.,;: ])$");
def is_midterm: test("^((Week|Unit|Lecture|Chapter|Module) [0-9]+ ?[:.–—-] ?)?Midterm( exam| examination)?$");
# At most so many characters, ended after a sentence if one ends in the second half, else after a word.
def cut($most):
  if length <= $most then .
  else .[:$most] as $begin
    | ($begin | rindex(". ")) as $sentence
    | if $sentence != null and $sentence > $most / 2 then $begin[:$sentence + 1] else "\($begin | sub("\\s+\\S*$"; "")) …" end
  end;
[$chunk.courses[].course_id] as $ids
| [ ($chunk.headings_before[] | {page: null, line: .}),
    ($chunk.pages[] | .number as $page | .text | split("\n")[] | {page: $page, line: (sub("^\\s+"; "") | sub("\\s+$"; ""))}) ]
| [.[] | select(.line != "" and (.line | test("page [0-9]+ of [0-9]+$") | not))]
| reduce .[] as $at ({course: null, past: false, topics: []};
    ([$at.line | heading] | .[0]) as $head
    | ([$ids[] | . as $id | select($at.line | startswith($id) and length < 80)] | .[0]) as $course
    | if $at.line | is_midterm then .past = true
      elif .past then .
      elif $course != null and $at.page != 1 or ($course != null and ($ids | length) > 1) then .course = $course | .topics += [null]
      elif $head != null then .topics += [{course_id: .course, head: $head, lines: []}]
      elif .topics == [] or .topics[-1] == null or $at.page == null then .
      else .topics[-1].lines += [$at]
      end)
| { topics: [
      .topics[] | select(. != null and .lines != [])
      | ([.lines[].line | capture("^(?<n>[0-9]+\\.[0-9]+) ").n] | unique | length) as $exercises
      | ([.lines[].page] | unique) as $pages
      | { course_id, topic: .head.topic,
          evidence_summary: ([
            "\($chunk.file_id), \(if .head.number == null then "" else "\(.head.kind | ascii_downcase) \(.head.number), " end)\(if ($pages | length) == 1 then "page \($pages[0])" else "pages \($pages[0])–\($pages[-1])" end):",
            (if $exercises > 0 then "\($exercises) exercises." else empty end),
            ([.lines[].line | select(test("[a-z]{3}"))] | join(" ") | cut(600)) ] | join(" ")) } ] }
