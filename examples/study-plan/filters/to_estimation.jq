# Coordinator -> Estimation: the courses with evidence, and the first and the last day.
.evidence.course_topic_evidence as $topics
| { session_id: $workspace.session_id,
    course_topic_evidence: [$topics[] | {course_id, topic, evidence_summary, source_files}],
    constraints: {
      start_date: ($request.start_date // $params.today),
      last_midterm_date: ([ $to_ingestion.courses[] | .course_id as $id
                            | select(any($topics[]; .course_id == $id)) | .midterm_date ]
                          | max // ($request.start_date // $params.today)) } }
