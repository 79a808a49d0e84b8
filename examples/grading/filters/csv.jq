# A row per criterion: what was found, and what it counted for. A spreadsheet runs no text of a model.
.result as $result
| ([$result.adjustments[] | {key: .criterion_id, value: .}] | from_entries) as $counted
| [ (["criterion", "category", "weight", "score", "severity", "severity_factor", "penalty", "bonus", "adjusted_score",
      "tokens_used", "cost_usd", "error"] | @csv),
    ( $result.evaluations[] | $counted[.criterion_id] as $c
      | [.criterion_id, .category, .weight, .score, .severity, $c.severity_factor, $c.penalty, $c.bonus,
         $c.adjusted_score, .tokens_used, .cost, .error]
      | map(escape_formula) | @csv ) ]
| join("\n") + "\n"
