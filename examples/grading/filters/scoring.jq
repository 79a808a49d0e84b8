# The grade. Every number of it stands in criteria.toml.
def round2: . * 100 | round / 100;
def shown: if . == floor then floor else . end;

.criteria as $table
| .request.criticism_multiplier as $m
| ([$table.criteria[] | {key: .criterion, value: .category}] | from_entries) as $category
| ([$table.criteria[].criterion]) as $order
| (.evaluations | sort_by(.criterion_id as $id | $order | index($id))) as $all

# severity first, then a penalty for those who think highly of themselves, or a bonus for those who do not
| [ $all[] | select(.error == null)
    | $table.severity_factors[.severity] as $factor
    | (if $m > 1 and .score < 100 then (100 - .score) * ($m - 1) * $table.scoring.penalty else 0 end) as $penalty
    | (if $m < 1 and .score < 100 then (100 - .score) * (1 - $m) * $table.scoring.bonus else 0 end) as $bonus
    | { criterion_id, category: $category[.criterion_id], weight, score, severity, severity_factor: $factor,
        penalty: $penalty, bonus: $bonus, adjusted_score: (.score * $factor - $penalty + $bonus) } ] as $counted

| def mean: (map(.weight) | add // 0) as $weight
    | if $weight > 0 then [(map(.adjusted_score * .weight) | add) / $weight, $table.scoring.lowest] | max else 0 end;

($counted | mean | round2) as $final
| ($final - .request.self_grade | round2) as $difference
| { submission_id: .request.submission_id,
    self_grade: .request.self_grade,
    final_score: $final,
    criticism_multiplier: $m,
    comparison_message: (
      if ($counted | length) == 0 then "No criterion could be evaluated: this is no grade"
      elif $difference > $table.scoring.agreement then "The work is better than its author thinks: \($final | shown) against \(.request.self_grade)"
      elif $difference < -$table.scoring.agreement then "The work is \(-$difference | shown) points below its author's own grade of \(.request.self_grade)"
      else "The author's own grade of \(.request.self_grade) agrees with \($final | shown)" end),
    breakdown: ([$table.criteria[].category] | reduce .[] as $name ([]; if index([$name]) then . else . + [$name] end)
      | map(. as $name | {key: ., value: [$counted[] | select(.category == $name)]} | select(.value != []))
      | map({key, value: {score: (.value | mean | round2), weight: (.value | map(.weight) | add | round2), criteria: (.value | length)}})
      | from_entries),
    adjustments: (($counted | map(.weight) | add) as $weight
      | [$counted[] | .lost = (100 - .adjusted_score) * .weight / $weight | .penalty |= round2 | .bonus |= round2 | .adjusted_score |= round2 | .lost |= round2]),
    evaluations: [$all[] | .category = $category[.criterion_id]],
    failed: [$all[] | select(.error != null) | .criterion_id],
    usage: { tokens: ($all | map(.tokens_used) | add // 0), cost_usd: ($all | map(.cost // 0) | add // 0) } }
