# Coordinator -> PlanningReviewer. Beyond the contract: confidence and files of each topic, which its rows need, and the numbers that the rules stand on.
[$to_estimation.course_topic_evidence[] | {key: "\(.course_id)\t\(.topic)", value: .source_files}] | from_entries
| . as $files
| { session_id: $workspace.session_id,
    courses: [ $to_ingestion.courses[] | select(.course_id as $id | any($to_estimation.course_topic_evidence[]; .course_id == $id)) | {course_id, course_name, midterm_date} ],
    topic_estimates: [ $estimates.topic_estimates[]
      | {course_id, topic, estimated_minutes, priority, confidence, source_files: ($files["\(.course_id)\t\(.topic)"] // [])} ],
    planning_rules: {
      include_every_date: true, end_at_last_midterm: true,
      start_date: $to_estimation.constraints.start_date,
      minutes_per_day: $params.minutes_per_day,
      requested_changes: ($previous.plan.revision_reasons // []) } }
