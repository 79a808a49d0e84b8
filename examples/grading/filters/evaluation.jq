# Answer and criterion joined: name and weight come from the table, never from the answer. A free agent has used nothing.
def title: split("_") | map((.[:1] | ascii_upcase) + .[1:]) | join(" ");
{ criterion_id: $criterion.criterion, criterion_name: ($criterion.criterion | title), weight: $criterion.weight,
  score, evidence, strengths, weaknesses, suggestions, severity, error: null,
  tokens_used: (($usage.input_tokens // 0) + ($usage.output_tokens // 0)),
  cost: (if $usage == null then 0 else $usage.cost_usd end) }
