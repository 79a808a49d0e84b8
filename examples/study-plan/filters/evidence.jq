# Ingestion -> Coordinator: one entry for each topic of a course, in the order in which its files tell them.
def key: "\(.course_id) \(.topic | ascii_downcase | gsub("[^\\p{L}\\p{N}]+"; " "))";
.to_ingestion as $h
| [.topics[] | {key: .chunk_id, value: .}] | from_entries
| . as $by
| [$chunks.chunks[].chunk_id | select($by[.] == null)] as $lost
| [$chunks.chunks[].chunk_id | select($by[.] != null and $by[.].topics == [])] as $silent
| [$chunks.chunks[].chunk_id | $by[.] | select(. != null) | .topics[]]
| [foreach .[] as $t (0; . + 1; $t + {at: .})]
| group_by(key) | sort_by(.[0].at)
| map({course_id: .[0].course_id, topic: .[0].topic, evidence_summary: (map(.evidence_summary) | join(" ")),
       source_files: (reduce .[].source_files[] as $f ([]; if index([$f]) then . else . + [$f] end)),
       source_chunks: map(.source_chunks[])})
| [. as $all | $h.courses[].course_id as $id | $all[] | select(.course_id == $id)] as $evidence
| [$h.courses[] | select(.course_id as $id | all($evidence[]; .course_id != $id))] as $bare
| { session_id: $h.session_id,
    course_topic_evidence: $evidence,
    ingestion_status: (if $evidence == [] then "failed" elif $lost + $chunks.unread + $bare != [] then "partial" else "complete" end),
    warnings: (
      [$chunks.unread[] | "file \(.) could not be read"]
      + $chunks.warnings
      + [$lost[] | "window \(.) has no answer"]
      + [$silent[] | "window \(.) names no topic"]
      + [$bare[] | "course \(.course_id) has no usable evidence: its midterm on \(.midterm_date) is not planned for"]) }
