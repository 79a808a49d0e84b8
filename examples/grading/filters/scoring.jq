include "sums";
# The grade. Every number of it stands in criteria.toml.
# A criterion without an evaluation does not have 0 points: while one is missing there is no grade; `not_graded` says
# why, and `graded_by` who evaluated the criteria, and what took the place of something else.
def round2: . * 100 | round / 100;
def shown: if . == floor then floor else . end;

.criteria as $table
| .request.criticism_multiplier as $m
| .document.engine as $engine
| (.agents.evaluator | split(" (")[0] | split(" ")) as $who
| ([$table.criteria[] | {key: .criterion, value: .category}] | from_entries) as $category
| ([$table.criteria[].criterion]) as $order
| (.evaluations | sort_by(.criterion_id as $id | $order | index($id))) as $all
| [$all[] | select(.error != null)] as $failed

# severity first, then a penalty for those who think highly of themselves, or a bonus for those who do not
| [ $all[] | select(.error == null)
    | $table.severity_factors[.severity] as $factor
    | (if $m > 1 and .score < 100 then (100 - .score) * ($m - 1) * $table.scoring.penalty else 0 end) as $penalty
    | (if $m < 1 and .score < 100 then (100 - .score) * (1 - $m) * $table.scoring.bonus else 0 end) as $bonus
    | { criterion_id, criterion_name, category: $category[.criterion_id], weight, score, severity,
        severity_factor: $factor, penalty: $penalty, bonus: $bonus,
        adjusted_score: (.score * $factor - $penalty + $bonus) } ] as $counted

# of the adjusted scores by weight, over as many criteria as there are; null if one of them was not evaluated
| def mean($of):
    if length == 0 or length < $of then null
    else [(map(.adjusted_score * .weight) | add) / (map(.weight) | add), $table.scoring.lowest] | max | round2 end;

($counted | mean($all | length)) as $final
| (if $final != null then null
   else "no evaluation for \($failed | length) of \($all | length) criteria: "
     + ([$failed[].error] | unique | join("; ")) end) as $not_graded
| (if $final == null then null else $final - .request.self_grade | round2 end) as $difference
| { submission_id: .request.submission_id,
    self_grade: .request.self_grade,
    final_score: $final,
    not_graded: $not_graded,
    criticism_multiplier: $m,
    comparison_message: (
      if $final == null then "Not graded: \($not_graded)"
      elif $difference > $table.scoring.agreement then
        "The work is better than its author thinks: \($final | shown) against \(.request.self_grade)"
      elif $difference < -$table.scoring.agreement then
        "The work is \(-$difference | shown) points below its author's own grade of \(.request.self_grade)"
      else "The author's own grade of \(.request.self_grade) agrees with \($final | shown)" end),
    breakdown: ([$table.criteria[].category] | reduce .[] as $name ([]; if index([$name]) then . else . + [$name] end)
      | map(. as $name | {key: ., value: [$all[] | select($category[.criterion_id] == $name)]} | select(.value != []))
      | map(.key as $name | (.value | length) as $criteria | [$counted[] | select(.category == $name)] as $own
        | { key, value: {
              score: ($own | mean($criteria)), weight: (.value | map(.weight) | add | round2),
              criteria: $criteria, evaluated: ($own | length) } })
      | from_entries),
    adjustments: (($all | map(.weight) | add) as $weight
      | [ $counted[]
          | .lost = (if $final == null then null else (100 - .adjusted_score) * .weight / $weight | round2 end)
          | .penalty |= round2 | .bonus |= round2 | .adjusted_score |= round2 ]),
    evaluations: [$all[] | .category = $category[.criterion_id]],
    failed: [$failed[].criterion_id],
    graded_by: {
      agent: ($who[0] | if . == "jq" then "offline evaluator" else . end),
      model: (if $who[0] == "jq" then null else $who[1:] | join(" ") end),
      date: .run.date,
      fallbacks: [
        ($engine | select(. != "builtin") | "text of the PDF by \(.)"),
        ($failed[] | "placeholder for \(.criterion_name)") ] },
    usage: {
      tokens: ($all | total(.tokens_used)),
      cost_usd: ($all | dollars(.cost)) } }
