# Answer and criterion joined: name and weight come from the table, never from the answer. A free agent uses 0 tokens;
# of a tool that does not report its tokens or its price they are null.
{ criterion_id: $criterion.criterion, criterion_name: $criterion.name, weight: $criterion.weight,
  score, evidence, strengths, weaknesses, suggestions, severity, error: null,
  tokens_used: ($usage
    | if .input_tokens == null or .output_tokens == null then null else .input_tokens + .output_tokens end),
  cost: $usage.cost_usd }
