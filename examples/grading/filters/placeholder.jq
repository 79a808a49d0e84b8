# What stands for a criterion whose evaluator failed. `.` is the failure: {outcome, error_code, message}.
def title: split("_") | map((.[:1] | ascii_upcase) + .[1:]) | join(" ");
{ criterion_id: $criterion.criterion, criterion_name: ($criterion.criterion | title), weight: $criterion.weight,
  score: 0, evidence: [], strengths: [], weaknesses: [], suggestions: [], severity: "critical",
  error: "\(.error_code): \(.message)", tokens_used: 0, cost: 0 }
