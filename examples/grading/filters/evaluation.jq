# Answer and criterion joined: name and weight come from the table, never from the answer.
def title: split("_") | map((.[:1] | ascii_upcase) + .[1:]) | join(" ");
{ criterion_id: $criterion.criterion, criterion_name: ($criterion.criterion | title), weight: $criterion.weight,
  score, evidence, strengths, weaknesses, suggestions, severity, error: null,
  tokens_used: ($usage.input_tokens + $usage.output_tokens), cost: $usage.cost_usd }
