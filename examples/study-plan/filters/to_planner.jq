# Coordinator -> PlanningReviewer. Beyond the contract: confidence and files of each topic, which its rows need.
# `revision_sessions`: on the last days before a midterm its course has no new topics, only a session of revision. If
# the topics do not fit then, there are fewer of these days, down to none.
include "lib";
([$to_estimation.course_topic_evidence[] | {key: "\(.course_id)\t\(.topic)", value: .source_files}]
 | from_entries) as $files
| $params.minutes_per_day as $limit
| ($to_estimation.constraints.start_date | day) as $first
| [ $to_ingestion.courses[] | .course_id as $id
    | select(any($to_estimation.course_topic_evidence[]; .course_id == $id))
    | {course_id, course_name, midterm_date} ] as $courses
| [ $courses[] | .course_id as $id
    | [$estimates.topic_estimates[] | select(.course_id == $id)] as $own
    | . + {at: ((.midterm_date | day) - $first), topics: [$own[].topic],
           work: ($own | total(.estimated_minutes))} ] as $all
# The sessions if at most $days days are for revision, and at most a third of all days. A tenth of the work is revised.
| def sessions($days):
    [ $all[] | . as $c | ([$days, (.at / 3 | floor), (.topics | length)] | min) as $n
      | ([([90, $limit, (.work / 50 / ([$n, 1] | max) | ceil * 5)] | min), 30] | max) as $minutes
      | range(0; $n) as $i
      | {course_id, date: ($first + .at - $n + $i | date), at: (.at - $n + $i), $minutes,
         topics: .topics[($i * (.topics | length) / $n | ceil):(($i + 1) * (.topics | length) / $n | ceil)]} ];
  def fits:
    . as $sessions
    | ([ $all[] | . as $c
         | {due: ([.at, ($sessions[] | select(.course_id == $c.course_id) | .at)] | min), work} ]) as $work
    | all($sessions[]; .at as $at | ([$sessions[] | select(.at == $at)] | total(.minutes)) <= $limit)
      and all($work[].due; . as $d
        | ([$work[] | select(.due <= $d)] | total(.work)) + ([$sessions[] | select(.at < $d)] | total(.minutes))
          <= 0.9 * $limit * $d);
[range($params.revision_days; 0; -1) | sessions(.) | select(fits)][0] // [] | map(del(.at))
| . as $revision
| { session_id: $workspace.session_id,
    courses: $courses,
    topic_estimates: [ $estimates.topic_estimates[]
      | {course_id, topic, estimated_minutes, priority, confidence,
         source_files: ($files["\(.course_id)\t\(.topic)"] // [])} ],
    planning_rules: {
      include_every_date: true, end_at_last_midterm: true,
      start_date: $to_estimation.constraints.start_date,
      minutes_per_day: $limit,
      revision_sessions: $revision,
      requested_changes: $requested.changes } }
