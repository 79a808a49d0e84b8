# What became of the submissions of a manifest: their grades, best first, and what could not be graded.
def graded: .status == "complete" or .status == "reused" or .status == "partial";
{ dry_run, submissions: (.entries | length),
  grades: ([.entries[] | select(graded) | {workspace, status, grade: .stages.score.summary.final_score}] | sort_by(.grade) | reverse),
  not_graded: [.entries[] | select(graded | not) | {workspace, status, error: .error.message}],
  cost_usd: ([.entries[].usage.cost_usd // 0] | add // 0) }
