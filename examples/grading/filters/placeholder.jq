# The record of a criterion whose evaluator failed. `.` is the failure: {outcome, error_code, message, usage}.
# Nothing was evaluated, so what an evaluation would give is null. What the failed calls used counts.
{ criterion_id: $criterion.criterion, criterion_name: $criterion.name, weight: $criterion.weight,
  score: null, evidence: [], strengths: [], weaknesses: [], suggestions: [], severity: null,
  error: "\(.error_code): \(.message)",
  tokens_used: (.usage
    | if .input_tokens == null or .output_tokens == null then null else .input_tokens + .output_tokens end),
  cost: .usage.cost_usd }
