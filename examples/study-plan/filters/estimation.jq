# The embedded estimator: 15 minutes for a topic, 3 for a page to read, 6 for an exercise, 2 for a question of a bank,
# in quarters of an hour between 30 minutes and 4 hours. The less the evidence counts, the lower the confidence.
# What the material calls hard takes a quarter more.
include "lib";
def quarters: (. / 15 | ceil) * 15;
def numbers($pattern): [scan($pattern) | .[0] | tonumber];
($previous.plan.revision_reasons // []) as $asked
| [ $to_estimation.course_topic_evidence[]
    | .evidence_summary as $text
    | ([$text | scan("pp?\\. ?([0-9]+) ?[–-] ?([0-9]+)") | map(tonumber)]
       | unique | map(.[1] - .[0] + 1) | add // 0) as $pages
    | ([$text | numbers("([0-9]+) exercises")[]] | max // 0) as $exercises
    | ([$text | numbers("([0-9]+) questions")[]] | max // 0) as $questions
    | ([$text | numbers("([0-9]+) ?% of the points")[]] | max) as $share
    | (if $text | test("plan more time|difficult|challenging|demanding|students (fail|struggle)"; "i") then "hard"
       elif $text | test("introductory|easy|known from school|recapitulat"; "i") then "easy"
       else "medium" end) as $difficulty
    | (15 + 3 * $pages + 6 * $exercises + 2 * $questions) as $counted
    | (if $difficulty == "hard" then 1.25 * $counted else $counted end) as $minutes
    | { course_id, topic, $difficulty,
        estimated_minutes: ([[$minutes, 30] | max | quarters, 240] | min),
        priority: (if ($share // 0) >= 25
                      or ($text | test("most important|every midterm|plan more time|of the midterm come from"; "i"))
                   then "high"
                   elif $share != null and $share <= 5 then "low" else "medium" end),
        confidence: (if $pages > 0 and $exercises + $questions > 0 then 0.9
                     elif $pages + $exercises + $questions > 0 then 0.7 else 0.4 end) } ]
| . as $first
# What the reviewer asks for: little evidence is no little work, so at least half of what a topic of that course takes.
| [ .[] | . as $t
    | if any($asked[]; startswith("estimate: \($t.course_id): \($t.topic): "))
      then ([$first[] | select(.course_id == $t.course_id and .confidence >= 0.5) | .estimated_minutes]
            | median) as $usual
        | .estimated_minutes = ([.estimated_minutes, (($usual // 0) / 2 | quarters)] | max)
      else . end ]
| { topic_estimates: .,
    uncertainty_flags: [.[] | select(.confidence < 0.5)
      | "\(.course_id): \(.topic): neither pages to read nor exercises are known"] }
