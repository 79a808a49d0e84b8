# What became of the submissions of a manifest: their grades, best first, what could not be graded, and what models cost, or will.
def graded: .status == "complete" or .status == "reused" or .status == "partial";
{ dry_run,
  submissions: (.entries | length),
  grades: ([.entries[] | select(graded) | {workspace, status, grade: .stages.score.summary.final_score}] | sort_by(.grade) | reverse),
  not_graded: [.entries[] | select((graded or .status == "planned") | not) | {workspace, status, error: (.error | if . == null then null else "\(.code): \(.message)" end)}],
  calls_to_come: ([.entries[].estimate.calls // 0] | add // 0),
  cost_to_come_usd: ([.entries[].estimate.cost_usd // 0] | add // 0),
  cost_usd: ([.entries[].usage.cost_usd // 0] | add // 0) }
