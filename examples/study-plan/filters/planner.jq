# The embedded planner. Every day each course gets its share of what is left until its midterm, the nearest midterm first; within a course the
# topics come in the order of the syllabus. Where not everything can be done, priority decides what is left out.
def day: "\(.)T00:00:00Z" | fromdateiso8601 / 86400 | floor;
def date: . * 86400 | todateiso8601 | .[:10];
def quarters: (. / 15 | ceil) * 15;
{high: 0, medium: 1, low: 2} as $rank
| $to_planner as $in
| $in.planning_rules as $rules
| $rules.minutes_per_day as $limit
| ($rules.start_date | day) as $first
| [$in.courses[] | . + {due: ((.midterm_date | day) - $first)}] | sort_by(.due)
| . as $courses
| ([$courses[] | {key: .course_id, value: .due}] | from_entries) as $due
| ([$courses[].due] | unique) as $deadlines
| [foreach ($in.topic_estimates[] | select($due[.course_id] != null)) as $t (0; . + 1; $t + {at: ., due: $due[$t.course_id]})]
# By priority, a topic gets the minutes for which those before it leave room: up to every deadline no more than its days hold.
| reduce sort_by($rank[.priority], .due, .at)[] as $t ([];
    . as $taken
    | ([$deadlines[] | select(. >= $t.due) | . as $d | $d * $limit - ([$taken[] | select(.due <= $d) | .minutes] | add // 0)] | min) as $room
    | . + [$t + {minutes: ([$room, $t.estimated_minutes] | min)}])
| map(select(.minutes > 0)) | sort_by(.at)
| . as $topics
# The lowest daily load with which all of that is done in time.
| ([$deadlines[] | . as $d | ([$topics[] | select(.due <= $d) | .minutes] | add // 0) / $d] | max // 0) as $needed
| (if any($rules.requested_changes[]; startswith("balance:")) then ([($needed | quarters) + 30, $limit] | min) else $limit end) as $level
# Minutes of each course on each day, as the stretch [from, to) of all its minutes.
| reduce range(0; $deadlines | max) as $at ({done: {}, stretches: []};
    reduce $courses[] as $c (. + {free: $level};
      ([$topics[] | select(.course_id == $c.course_id) | .minutes] | add // 0) as $all
      | (.done[$c.course_id] // 0) as $from
      | (if $c.due > $at then [(($all - $from) / ($c.due - $at) | quarters), $all - $from, .free] | min else 0 end) as $minutes
      | if $minutes <= 0 then . else
          .done[$c.course_id] = $from + $minutes
          | .free -= $minutes
          | .stretches += [{at: $at, course_id: $c.course_id, from: $from, to: ($from + $minutes)}]
        end))
| .stretches as $stretches
# The same stretches by topic.
| [ $courses[] | . as $c
    | foreach ($topics[] | select(.course_id == $c.course_id)) as $t ({to: 0}; {from: .to, to: (.to + $t.minutes)};
        . as $own
        | [$stretches[] | select(.course_id == $c.course_id and .from < $own.to and .to > $own.from)]
        | length as $parts
        | range(0; $parts) as $n
        | {at: .[$n].at, part: ($n + 1), parts: $parts, course: $c.course_name, topic: $t,
           minutes: (([.[$n].to, $own.to] | min) - ([.[$n].from, $own.from] | max))}) ]
| . as $sessions
| { rows: [
      range(0; ($deadlines | max) + 1) as $at
      | ($first + $at | date) as $date
      | [$courses[] | select(.due == $at)] as $midterms
      | [$sessions[] | select(.at == $at)] as $today
      | ( ( $midterms[] | {date: $date, course: .course_name, topic: "Midterm", task_description: "Midterm of \(.course_id)", estimated_minutes: 0,
              priority: "high", source_files: [], status: "planned"} ),
          ( $today[] | {date: $date, course, topic: .topic.topic,
              task_description: "Study \(.topic.topic)\(if .parts > 1 then ", part \(.part) of \(.parts)" else "" end)",
              estimated_minutes: .minutes, priority: .topic.priority, source_files: .topic.source_files,
              status: (if .topic.confidence < 0.5 then "review" else "planned" end)} ),
          ( if $today == [] and $midterms == [] then {date: $date, course: "", topic: "", task_description: "Free day", estimated_minutes: 0,
              priority: "low", source_files: [], status: "planned"} else empty end ) ) ] }
