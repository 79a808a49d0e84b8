# The evaluator that needs no model. It reads the prose on the pages that speak of a criterion by the row of
# criteria.toml, and says where it found what: points that a full answer shows (55), a section of its own (15), how much
# is said (15), and code (15) where the row names a language. It measures that something is said, not that it is true.
def plain: " " + (ascii_downcase | gsub("[^a-z0-9%]+"; " ")) + " ";
def has_any($words): . as $text | any($words[]; . as $word | $text | contains($word));
# Words of the table: beginnings of words, and with a space behind it a whole word.
def beginnings: map(" " + (ascii_downcase | gsub("[^a-z0-9%]+"; " ")));
def counted($one; $many): if . == 1 then "1 \($one)" else "\(.) \($many)" end;
def language:
  { python: "Python", sql: "SQL", json: "JSON", yaml: "YAML", bash: "shell", javascript: "JavaScript",
    java: "Java", c: "C" }[.];

.criterion as $row
| .document as $document
| ($row.keywords | map(ascii_downcase)) as $keywords
| ($row.keywords | beginnings) as $subject

# the pages that `context` holds
| [ $document.text_content | to_entries | sort_by(.key | tonumber)[]
    | select(.value | ascii_downcase | has_any($keywords)) | .key | tonumber ] as $pages
| [ $document.structure.sections[] | select(.title | plain | has_any($subject)) ] as $sections
| [ $document.code_blocks[]
    | select(.language == $row.code and (.page_number | IN($pages[]))) ] as $code

# what is said: in a section of its own, in a sentence that names the criterion, or, without a section of its own, near
# such a sentence: on its page and in its section
| [ $document.passages[] | .plain = (.text | plain)
    | .is_own = any(.section[]; plain | has_any($subject)) | .is_about = (.plain | has_any($subject)) ] as $all
| [$all[] | select($sections == [] and .is_about) | [.page, .section]] as $near
| [$all[] | select(.is_own or .is_about or ([.page, .section] | IN($near[])))] as $passages
| [ $passages[] | select(.kind != "row" and (.is_own or .is_about)) ] as $about

# where a point is shown: the words of the table come in order of preference, and a section of its own is best
| [ $passages[] | select(.is_own) | .section[-1] as $title | ($title | plain) as $plain
    | select($plain | has_any($subject) | not) | {page, plain: $plain, shows: "section “\($title)”"} ] as $titles
| [ $passages[] | select(.text | test("\\b[Tt]here (is|are|was|were) no\\b") | not)
    | .shows = ({sentence: "", item: "list item ", row: "table row "}[.kind] + "“\(.text)”") ] as $found
| ($found | map(select(.kind == "sentence")) + map(select(.kind == "item"))) as $said
| [($said[] | select(.is_own)), $titles[], ($found[] | select(.is_own and .kind == "row"))] as $own
| [($said[] | select(.is_about)), $said[], ($found[] | select(.kind == "row"))] as $other
| [ select($row.code_shows_points) | $code[] | {page: .page_number, plain: (.content | plain), is_code: true,
      shows: "\(.line_count) lines of \(.language | language)"} ] as $blocks
| [ $row.points | to_entries[] | .key as $point | (.value | beginnings) as $words
    | first(
        (($own, $blocks, $other) as $tier | $words[] as $word | $tier[] | select(.plain | contains($word))),
        {page: null})
    | {page, shows, is_code, point: $point} ] as $points
| [ $points[] | select(.page != null) ] as $shown
| [ $points[] | select(.page == null) | .point ] as $missing

| [ {most: 55, share: (($shown | length) / ($points | length))},
    {most: 15, share: (if $sections == [] then 0 else 1 end)},
    {most: 15, share: ([($about | length) / 8, 1] | min)},
    (if $row.code then {most: 15, share: ([($code | length) / 2, 1] | min)} else empty end) ] as $parts
| (100 * ($parts | map(.most * .share) | add) / ($parts | map(.most) | add) | round) as $score
| ($pages == [] or ($about == [] and $shown == [] and $sections == [])) as $is_absent

| { score: (if $is_absent then 0 else $score end),
    evidence: [
      ($sections[:1][] | "Page \(.page): section “\(.title)”"),
      ($shown | group_by([.page, .shows])[] | "Page \(.[0].page): \(map(.point) | join("; ")): \(.[0].shows)"),
      (if $is_absent then [] else $code end
        | map(select(.page_number | IN($shown[] | select(.is_code) | .page) | not)) | group_by(.page_number)[:3][]
        | "Page \(.[0].page_number): \(map(.line_count) | add) lines of \(.[0].language | language)"
        + " in \(length | counted("block"; "blocks"))") ],
    strengths: [
      (if $shown != [] then "Covers \($shown | length) of \($points | length | counted("point"; "points")): "
        + ($shown | map(.point) | join("; ")) else empty end),
      (if ($about | length) >= 8
        then ($about | map(.page) | unique | length | counted("page"; "pages")) as $pages
          | "Says much: \($about | length) sentences on \($pages)"
        else empty end),
      ($sections[:1][] | "Has a section of its own: “\(.title)”") ],
    weaknesses: [
      (if $pages == [] then "No page speaks of it" elif $is_absent then "No sentence speaks of it" else empty end),
      ($missing | select(. != [] and ($is_absent | not)) | "Nothing was found on: \(join("; "))"),
      (if $sections == [] then "Has no section of its own" else empty end),
      (if $is_absent or ($about | length) >= 4 then empty
        elif $about == [] then "No sentence speaks of it"
        else "Says little: \($about | length | counted("sentence"; "sentences"))" end),
      (if $row.code and $code == [] then "Shows no \($row.code | language)" else empty end) ],
    suggestions: [
      ($missing | select(. != []) | "Add what the report lacks: \(join("; "))"),
      (if $sections == []
        then "Give it a section, with “\($row.keywords[0] | rtrimstr(" "))” in the title" else empty end) ],
    severity: (if $is_absent or $score < 40 then "critical" elif $score < 70 then "important"
      elif $score < 90 then "minor" else "strength" end) }
