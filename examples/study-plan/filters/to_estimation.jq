# Coordinator -> Estimation: the courses that have evidence, and the days between which all is to be done.
.evidence.course_topic_evidence as $topics
| { session_id: $workspace.session_id,
    course_topic_evidence: [$topics[] | {course_id, topic, evidence_summary, source_files}],
    constraints: {
      start_date: ($request.start_date // $params.today),
      last_midterm_date: ([$to_ingestion.courses[] | select(.course_id as $id | any($topics[]; .course_id == $id)) | .midterm_date] | max // ($request.start_date // $params.today)) } }
