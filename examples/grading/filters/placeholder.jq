# The record of a criterion whose evaluator failed. `.` is the failure: {outcome, error_code, message}.
# Nothing was evaluated, so what an evaluation would give is null. `milepost status` counts the failed calls.
{ criterion_id: $criterion.criterion, criterion_name: $criterion.name, weight: $criterion.weight,
  score: null, evidence: [], strengths: [], weaknesses: [], suggestions: [], severity: null,
  error: "\(.error_code): \(.message)", tokens_used: null, cost: null }
