# Coordinator -> Ingestion: which files belong to which course, and how they are cut.
{ session_id: $workspace.session_id,
  courses: [.request.courses[] | {course_id, course_name, midterm_date, file_ids}],
  shared_file_ids: (.request.shared_file_ids // []),
  ingestion_config: {chunking_mode: "page_window", max_pages_per_chunk: $params.max_pages_per_chunk} }
