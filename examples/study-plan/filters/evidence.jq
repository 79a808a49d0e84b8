# Ingestion -> Coordinator: one entry for each topic of a course, in the order of its files.
def key: "\(.course_id) \(.topic | ascii_downcase | gsub("[^\\p{L}\\p{N}]+"; " "))";
.to_ingestion as $h
| [.topics[] | {key: .chunk_id, value: .}] | from_entries
| . as $by
| [$chunks.chunks[].chunk_id | select($by[.] == null)] as $lost
# A file of a course without any topic is as bad as one that cannot be read. A window without topics is not.
| [$h.courses[].file_ids[] | . as $file
   | select([$chunks.chunks[] | select(.file_id == $file) | $by[.chunk_id]]
            | . != [] and all(.[]; . != null and .topics == []))] as $bare_files
| [$chunks.chunks[] | select($by[.chunk_id] != null and $by[.chunk_id].topics == [])
   | select([.file_id] - $bare_files != []) | .chunk_id] as $silent
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
    ingestion_status: (if $evidence == [] then "failed"
                       elif $lost + $chunks.unread + $bare + $bare_files != [] then "partial" else "complete" end),
    warnings: (
      [$chunks.unread[] | "file \(.) could not be read"]
      + $chunks.warnings
      + [$lost[] | "window \(.) has no answer"]
      + [$bare_files[] | "no topics were found in \(.): name them in headings such as \"Week 3: Determinants\""]
      + [$silent[] | "window \(.) names no topic"]
      + [$bare[] | "course \(.course_id) has no usable evidence: its midterm on \(.midterm_date) is not planned for"]) }
