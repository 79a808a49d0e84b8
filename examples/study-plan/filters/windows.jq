# Page windows of each file, in the order of the request. A file that could not be read is not among the texts.
# `headings_before` are the headings of the pages before a window, which may begin in the middle of a topic.
.to_ingestion as $h
| $h.ingestion_config.max_pages_per_chunk as $size
| [range(.texts | length) as $at | {key: ($paths.texts[$at] | split("/")[-1] | rtrimstr(".json")), value: .texts[$at]}]
| from_entries
| . as $read
| [$h.courses[].file_ids[], $h.shared_file_ids[]]
| reduce .[] as $file ([]; if index([$file]) then . else . + [$file] end)
| . as $order
| { session_id: $h.session_id,
    chunks: [
      $order[] | . as $file | select($read[$file] != null) | $read[$file].pages as $all
      | [$h.courses[] | select($h.shared_file_ids + .file_ids | index([$file])) | {course_id, course_name}] as $courses
      | [$courses[].course_id] as $ids
      | [ $all[] | .number as $page | .text | split("\n")[] | sub("^\\s+"; "") | sub("\\s+$"; "")
          | select(length < 80 and (endswith(".") | not))
          | select(test("^(Week|Unit|Lecture|Chapter|Module|Topic|Midterm)\\b")
                   or (. as $line | any($ids[]; . as $id | $line | startswith($id))))
          | {page: $page, line: .} ] as $headings
      | range(0; $all | length; $size) as $at
      | $all[$at:$at + $size] as $window
      | { chunk_id: "\($file | rtrimstr(".pdf"))-p\($window[0].number)-\($window[-1].number)",
          file_id: $file, courses: $courses,
          headings_before: [$headings[] | select(.page < $window[0].number) | .line],
          pages: [$window[] | {number, text}] } ],
    unread: [$order[] | select($read[.] == null)],
    warnings: [$order[] | . as $file | $read[$file].warnings // [] | .[] | "\($file): \(.)"] }
