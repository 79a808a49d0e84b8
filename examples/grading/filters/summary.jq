include "sums";
# What became of the submissions of a manifest: grades, best first; what was not graded, and why; what models cost.
# Only a submission with all its criteria evaluated has a grade; any other stands under `not_graded` with its reason.
# `results` has an AgentResult for each: `output` is its GradingResult, null if it has no grade.
def is_graded:
  (.status == "complete" or .status == "reused")
  and .stages.score.status == "complete" and .stages.score.summary.final_score != null;
# Only a plan knows what is to come.
def to_come(f): if any(.[]; .estimate != null) then [.[].estimate | values] | f else null end;
def reason:
  .stages.score.summary.not_graded as $why
  | if .error != null then "\(.error.code): \(.error.message)"
    elif .status == "partial" and $why != null then $why
    else .reason // $why // "stage `score` did not run" end;
{ dry_run,
  submissions: (.entries | length),
  grades: ([.entries[] | select(is_graded) | {workspace, status, grade: .stages.score.summary.final_score}]
    | sort_by(.grade) | reverse),
  not_graded: [.entries[] | select((is_graded or .status == "planned") | not) | {workspace, status, error: reason}],
  results: [.entries[] | select(.status != "planned") | is_graded as $success | .stages.report.summary as $report
    | { workspace, success: $success,
        output: (if $success then $report.report_paths.json else null end),
        error: (if $success then null else reason end),
        metadata: {report_paths: ($report.report_paths // {}), total_cost: .usage.cost_usd},
        execution_time: .seconds }],
  calls_to_come: (.entries | to_come(total(.calls))),
  cost_to_come_usd: (.entries | to_come(dollars(.cost_usd))),
  cost_usd: (.entries | dollars(.usage.cost_usd)) }
