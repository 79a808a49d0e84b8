# The embedded reader. It finds topics in three places: headings of the form "Week 3: Determinants" (Unit, Lecture,
# Chapter, Module, Topic), tables with a column "Topic", and numbered lists under a heading such as "Course contents".
# The lines up to the next topic are its evidence. A heading that begins with a course's id says whose topics follow.
# Everything after the midterm is ignored.
def heading:
  capture("^(?<kind>Week|Unit|Lecture|Chapter|Module|Topic)( (?<number>[0-9]+))? ?[:.–—-] ?"
          + "(?<topic>\\p{Lu}.{1,68}[^.,;: ])$");
def is_midterm:
  test("^((Week|Unit|Lecture|Chapter|Module) [0-9]+ ?[:.–—-] ?)?Midterm( exam| examination| test)?$");
def cells: [splits(" {2,}|\t")];
# The column of the topics, if the line is the head of a timetable.
def topic_column:
  [ cells | select(length > 1) | to_entries[]
    | select(.value | test("^(Topics?|Subject|Theme|Contents?)( covered)?$"; "i")) ][0].key;
def begins_list:
  test("^((Course|Tentative|Weekly|Lecture|List of) )*(contents?|topics|outline|schedule|programme)( covered)?$"; "i");
def numbered: capture("^(?<number>[0-9]{1,2})[.)] (?<topic>\\p{Lu}.*)$");
def is_heading: length < 40 and test("^\\p{Lu}[^(]*[^.,;:) ]$");
def no_class:
  test("^((spring|fall|autumn|winter|reading|mid-term) )?(break|holiday|recess|week)\\b|no class|^(review|revision)$";
       "i");
# At most $most characters: up to the end of a sentence if one ends in the second half, else of a word.
def cut($most):
  if length <= $most then .
  else .[:$most] as $begin
    | ($begin | rindex(". ")) as $sentence
    | if $sentence != null and $sentence > $most / 2 then $begin[:$sentence + 1]
      else "\($begin | sub("\\s+\\S*$"; "")) …" end
  end;
# A topic of a table or a list, with the rest of its line as evidence.
def entry($at; $number; $topic; $rest):
  if $topic | test("^midterm\\b"; "i") then .past = true
  elif $topic | no_class then .topics += [null]
  else .topics += [ {course_id: .course, head: {kind: "number", $number, topic: $topic[:70]},
                     lines: [$at + {line: ($rest | rtrimstr(")"))}]} ]
  end;
[$chunk.courses[].course_id] as $ids
| [ ($chunk.headings_before[] | {page: null, line: .}),
    ($chunk.pages[] | .number as $page | .text | split("\n")[]
     | {page: $page, line: (sub("^\\s+"; "") | sub("\\s+$"; ""))}) ]
| [.[] | select(.line != "" and (.line | test("page [0-9]+ of [0-9]+$") | not))]
| reduce .[] as $at ({course: null, past: false, column: null, list: false, topics: []};
    ([$at.line | heading] | .[0]) as $head
    | ([$ids[] | . as $id | select($at.line | startswith($id) and length < 80)] | .[0]) as $course
    | ($at.line | topic_column) as $column
    | ($at.line | cells) as $cells
    | ([$at.line | numbered] | .[0]) as $item
    | if $at.line | is_midterm then .past = true
      elif .past then .
      elif $course != null and $at.page != 1 or ($course != null and ($ids | length) > 1) then
        .course = $course | .topics += [null] | .column = null | .list = false
      elif $head != null then .topics += [{course_id: .course, head: $head, lines: []}]
      elif $column != null then .column = $column | .list = false
      elif $at.line | begins_list then .list = true | .column = null
      elif .column != null and ($cells | length) > .column then
        entry($at; $cells[0]; $cells[.column]; $cells[.column + 1:] | join("; "))
      elif .list and $item != null then
        ($item.topic | split(" (")) as $parts | entry($at; $item.number; $parts[0]; $parts[1:] | join(" ("))
      elif (.list or .column != null) and ($at.line | is_heading) then
        .list = false | .column = null | .topics += [null]
      elif .topics == [] or .topics[-1] == null or $at.page == null then .
      else .topics[-1].lines += [$at]
      end)
| { topics: [
      .topics[] | select(. != null and .lines != [])
      | ([.lines[].line | capture("^(?<n>[0-9]+\\.[0-9]+) ").n] | unique | length) as $exercises
      | ([.lines[].page] | unique) as $pages
      | { course_id, topic: .head.topic,
          evidence_summary: ([
            "\($chunk.file_id), \(
              if .head.number == null then "" else "\(.head.kind | ascii_downcase) \(.head.number), " end)\(
              if ($pages | length) == 1 then "page \($pages[0])" else "pages \($pages[0])–\($pages[-1])" end):",
            (if $exercises > 0 then "\($exercises) exercises." else empty end),
            ([.lines[].line | select(test("[a-z]{3}|pp?\\."))] | join(" ") | cut(600)) ] | join(" ")) } ] }
