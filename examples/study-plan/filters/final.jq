# The plan that is handed out: the approved rows as they are, and what a reader must know about them.
.to_planner as $in
| ([$plan.plan_rows[] | select(.estimated_minutes > 0)] | group_by([.course, .topic])
   | map({key: "\(.[0].course)\t\(.[0].topic)", value: ([.[].estimated_minutes] | add)}) | from_entries) as $planned
| [ $in.topic_estimates[] as $t | $in.courses[] | select(.course_id == $t.course_id)
    | $t + {course: .course_name, planned_minutes: ($planned["\(.course_name)\t\($t.topic)"] // 0)} ] as $topics
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
    uncovered: $uncovered,
    plan_rows: $plan.plan_rows }
