# The plan that is handed out: the approved rows as they are, and what a reader must know about them.
def sum: if any(.[]; . == null) then null else add // 0 | . * 1e9 | round / 1e9 end;
# "anthropic claude-sonnet-4-5 (…)" -> agent and model. A filter is its own agent, and has no model.
def who($for; $cost):
  split(" (")[0] | split(" ")
  | {$for, agent: (if .[0] == "jq" then .[1] else .[0] end),
     model: (if .[0] == "jq" then null else .[1:] | join(" ") | if . == "" then null else . end end),
     cost_usd: $cost};
# What a window without an answer cost is not known here.
([$windows[].cost_usd] + (if ($windows | length) < ($chunks.chunks | length) then [null] else [] end) | sum) as $reading
| [ (.agents.ingestion | who("topics"; $reading)),
    (.agents.estimation | who("estimates"; [$history[].cost_usd.estimation] | sum)),
    (.agents.planner | who("plan"; [$history[].cost_usd.planner] | sum)) ] as $made_by
| [ range(.texts | length) as $at | .texts[$at].engine | select(. != "builtin")
    | "text of \($paths.texts[$at] | split("/")[-1] | rtrimstr(".json")) by \(.)" ] as $fallbacks
| .to_planner as $in
| ([$estimates.topic_estimates[] | {key: "\(.course_id)\t\(.topic)", value: .difficulty}] | from_entries) as $difficulty
| ([$plan.plan_rows[] | select(.estimated_minutes > 0)] | group_by([.course, .topic])
   | map({key: "\(.[0].course)\t\(.[0].topic)", value: ([.[].estimated_minutes] | add)}) | from_entries) as $planned
| [ $in.topic_estimates[] as $t | $in.courses[] | select(.course_id == $t.course_id)
    | $t + {course: .course_name, difficulty: $difficulty["\(.course_id)\t\($t.topic)"],
            planned_minutes: ($planned["\(.course_name)\t\($t.topic)"] // 0)} ] as $topics
| [$topics[] | select(.planned_minutes < .estimated_minutes)
   | {course, topic, priority, estimated_minutes, planned_minutes}] as $uncovered
| { session_id: $workspace.session_id,
    result_type: $plan.result_type,
    verdict: ([ (if $uncovered == [] then empty
                 else "not everything fits: \($uncovered | length) of \($topics | length) topics are left out or "
                      + "cut short" end),
                (if $evidence.ingestion_status == "complete" then empty
                 else "incomplete: not all of the material could be read" end) ]
              | if . == [] then "everything fits" else join("; ") end),
    revision_reasons: $plan.revision_reasons,
    validation_report: $plan.validation_report,
    start_date: $in.planning_rules.start_date,
    last_midterm_date: ([$in.courses[].midterm_date] | max),
    minutes_per_day: $in.planning_rules.minutes_per_day,
    revisions: ($history | length - 1),
    ingestion_status: $evidence.ingestion_status,
    warnings: $evidence.warnings,
    uncertainty_flags: $estimates.uncertainty_flags,
    courses: [ $in.courses[] | . as $c | [$topics[] | select(.course_id == $c.course_id)] as $own
      | {course_id, course_name, midterm_date, topics: ($own | length),
         estimated_minutes: ([$own[].estimated_minutes] | add // 0),
         planned_minutes: ([$own[].planned_minutes] | add // 0),
         revision_minutes: ($planned["\(.course_name)\tRevision"] // 0)} ],
    topics: [$topics[] | {course, topic, estimated_minutes, planned_minutes, difficulty, priority, confidence}],
    uncovered: $uncovered,
    made_by: {date: $run.date, agents: $made_by, cost_usd: ([$made_by[].cost_usd] | sum), $fallbacks},
    plan_rows: $plan.plan_rows }
