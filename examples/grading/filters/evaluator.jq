# The evaluator that needs no model. It reads the pages that speak of a criterion by the row of criteria.toml, and says where it
# found what: points that a full answer shows (55), a chapter of its own (15), how much is said (15), and code (15) where the row
# names a language. It measures that something is said, not that it is true.
def plain: " " + (ascii_downcase | gsub("[^a-z0-9%\n]+"; " "));
def has_any($words): . as $text | any($words[]; . as $word | $text | contains($word));
def cut: gsub("\\s+"; " ") | ltrimstr(" ") | if length > 110 then .[:110] + " …" else . end;

.criterion as $row
| .document as $document
| ($row.keywords | map(ascii_downcase)) as $keywords

# the pages that `context` holds, and their lines, as they are and without signs
| [ $document.text_content | to_entries | sort_by(.key | tonumber)[]
    | {page: (.key | tonumber), text: .value} | select(.text | ascii_downcase | has_any($keywords)) ] as $pages
| [ $pages[] | .page as $page | [.text | split("\n"), (plain | split("\n"))] | transpose[]
    | select((.[0] | length) > 3) | {page: $page, line: .[0], plain: (" " + .[1]), about: (.[0] | ascii_downcase | has_any($keywords))} ] as $lines
| [ $lines[] | select(.about) ] as $about

# a point is shown best by a line that speaks of the criterion
| [ $row.points | to_entries[] | (.value | map(plain)) as $words
    | {point: .key, at: (first(($about[], $lines[]) | select(.plain | has_any($words))) // null)} ] as $points
| [ $points[] | select(.at != null) ] as $shown
| [ $points[] | select(.at == null) | .point ] as $missing
| [ $document.structure.sections[] | select(.title | ascii_downcase | has_any($keywords)) ] as $sections
| [ $document.code_blocks[] | select(.language == $row.code) ] as $code

| [ {name: "points", most: 55, share: (($shown | length) / ($points | length))},
    {name: "section", most: 15, share: (if $sections == [] then 0 else 1 end)},
    {name: "depth", most: 15, share: ([($about | length) / 8, 1] | min)},
    (if $row.code then {name: "code", most: 15, share: ([($code | length) / 2, 1] | min)} else empty end) ] as $parts
| (100 * ($parts | map(.most * .share) | add) / ($parts | map(.most) | add) | round) as $score

| { score: (if $pages == [] then 0 else $score end),
    evidence: [ ($sections[:1][] | "Page \(.page): section “\(.title)”"),
                ($shown[] | "Page \(.at.page): \(.point): “\(.at.line | cut)”"),
                ($code[:2][] | "Page \(.page_number): \(.line_count) lines of \(.language)") ],
    strengths: [ (if $shown != [] then "It shows " + ($shown | map(.point) | join(", ")) else empty end),
                 (if ($about | length) >= 8 then "\($about | length) lines on \($pages | length) pages speak of it" else empty end),
                 ($sections[:1][] | "It has a section of its own, “\(.title)”") ],
    weaknesses: [ (if $pages == [] then "No page speaks of it" else empty end),
                  ($missing[] | "Nothing was found on: \(.)"),
                  (if $sections == [] then "No section has it in its title" else empty end),
                  (if $pages != [] and ($about | length) < 4 then "Lines that speak of it: only \($about | length)" else empty end),
                  (if $row.code and $code == [] then "No code in \($row.code) was found" else empty end) ],
    suggestions: [ ($missing[] | . as $point | "Say something on \($point), for instance with: " + ($row.points[$point][:2] | join(", "))),
                   (if $sections == [] then "Give it a section, with “\($row.keywords[0] | rtrimstr(" "))” in the title" else empty end) ],
    severity: (if $pages == [] or $score < 40 then "critical" elif $score < 70 then "important" elif $score < 90 then "minor" else "strength" end) }
