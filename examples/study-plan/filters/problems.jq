# What is wrong with the request, by the error that it causes.
def is_date: . as $d | try ("\($d)T00:00:00Z" | fromdateiso8601 | todateiso8601 | .[:10] == $d) catch false;
(.request.start_date // $params.today) as $first
| .to_ingestion.courses as $courses
| { dates: [$first, $courses[].midterm_date | select(is_date | not)],
    courses: [($courses | group_by(.course_id)[] | select(length > 1) | .[0].course_id),
              ($courses | group_by(.course_name)[] | select(length > 1) | .[0].course_name)],
    bare: (if .to_ingestion.shared_file_ids == [] then [$courses[] | select(.file_ids == []) | .course_id] else [] end),
    missing: (.files - [.paths.pdfs[] | split("/")[-1]]),
    past: [$courses[] | select(.midterm_date <= $first) | "\(.course_id) on \(.midterm_date)"] }
