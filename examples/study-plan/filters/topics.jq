# Files and windows come from the hand-off, never from the answer. A topic without a course belongs to every course of
# the file.
# The midterm and the revision before it have rows of their own.
{ session_id: $workspace.session_id, chunk_id: $chunk.chunk_id, cost_usd: $usage.cost_usd,
  topics: [ .topics[] as $t
    | select($t.topic | test("^(midterm|revision)$"; "i") | not)
    | (if $t.course_id != null then $t.course_id else $chunk.courses[].course_id end)
    | {course_id: ., topic: $t.topic, evidence_summary: $t.evidence_summary, source_files: [$chunk.file_id],
       source_chunks: [$chunk.chunk_id]} ] }
