# PlanningReviewer -> Coordinator: the verdict, computed from the rows whoever wrote them.
def day: "\(.)T00:00:00Z" | fromdateiso8601 / 86400 | floor;
def date: . * 86400 | todateiso8601 | .[:10];
def median: sort | if . == [] then null else .[(length - 1) / 2 | floor] end;
def total(f): [.[] | f] | add // 0;
.to_planner as $in
| $in.planning_rules as $rules
| .rows.rows as $rows
| ($rules.start_date | day) as $first
| ([$in.courses[].midterm_date | day] | max) as $last
| ([$in.courses[] | {key: .course_id, value: .}] | from_entries) as $course
| ([$in.courses[] | {key: .course_name, value: .}] | from_entries) as $named
| [$rows[] | select(.estimated_minutes > 0)] as $study
| [$in.topic_estimates[] | select($course[.course_id] != null) | . + {due: (($course[.course_id].midterm_date | day) - $first)}] as $topics

# Estimates: one for each topic that was handed over, and none too low for how uncertain it is.
| [$to_estimation.course_topic_evidence[] | "\(.course_id): \(.topic)"] as $asked
| [$in.topic_estimates[] | "\(.course_id): \(.topic)"] as $told
| [ ($asked - $told)[] | "estimate: \(.): no estimate was given" ]
  + [ ($told - $asked)[] | "estimate: \(.): nobody asked for this topic" ]
  + [ $told | group_by(.)[] | select(length > 1) | "estimate: \(.[0]): it is estimated \(length) times" ]
  + [ $topics[] | select(.confidence < 0.5) | . as $t
      | ([$topics[] | select(.course_id == $t.course_id and .confidence >= 0.5) | .estimated_minutes] | median) as $usual
      | select($usual != null and .estimated_minutes < $usual / 2)
      | "estimate: \(.course_id): \(.topic): \(.estimated_minutes) minutes at a confidence of \(.confidence), where topics of this course take \($usual)" ] as $estimates

# Dates: each from the first to the last midterm, no work for a course on its midterm or later.
| [range($first; $last + 1) | date] as $dates
| [ ($dates - [$rows[].date])[] | "dates: nothing is said of \(.)" ]
  + [ ([$rows[].date] | unique) - $dates | .[] | "dates: \(.) is not between \($dates[0]) and \($dates[-1])" ]
  + [ if [$rows[].date] == ([$rows[].date] | sort) then empty else "dates: the rows are not in their order" end ]
  + [ $in.courses[] | . as $c | select(all($rows[]; .date != $c.midterm_date or .course != $c.course_name)) | "dates: the midterm of \(.course_id) on \(.midterm_date) is not in the plan" ]
  + [ $study[] | select($named[.course] != null and .date >= $named[.course].midterm_date) | "dates: \(.topic) on \(.date) is too late for the midterm of \($named[.course].course_id)" ]
    as $late

# Coverage: as many minutes as were estimated for each topic, and no topic that is none.
| ($study | group_by([.course, .topic]) | map({key: "\(.[0].course)\t\(.[0].topic)", value: total(.estimated_minutes)}) | from_entries) as $planned
| [$topics[] | . + {name: $course[.course_id].course_name} | . + {planned: ($planned["\(.name)\t\(.topic)"] // 0)}] as $cover
| [$cover[] | select(.planned < .estimated_minutes)] as $short
| (($planned | keys) - [$cover[] | "\(.name)\t\(.topic)"] | map("coverage: \(split("\t") | join(": ")) is no topic of the estimates")) as $invented

# Capacity: up to each midterm no more than its days hold; by that, how much can be done at all.
| [[$topics[].due] | unique[] | . as $d
   | {due: $d, new: ([$topics[] | select(.due == $d)] | total(.estimated_minutes)), work: ([$topics[] | select(.due <= $d)] | total(.estimated_minutes)), holds: ($d * $rules.minutes_per_day)}] as $deadlines
| any($deadlines[]; .work > .holds) as $impossible
| (reduce $deadlines[] as $d (0; [. + $d.new, $d.holds] | min)) as $most
| ([$cover[] | [.planned, .estimated_minutes] | min] | add // 0) as $done
| [ if $impossible
    then (if $done < $most - 60 then "coverage: \($done) minutes are planned where \($most) have room" else empty end)
    else ($short[] | "coverage: \(.course_id): \(.topic): \(.planned) of \(.estimated_minutes) minutes are planned") end ] + $invented as $gaps

# Load: no day above the limit, and none more than an hour above the load with which all could be done.
| ($study | group_by(.date) | map({date: .[0].date, minutes: total(.estimated_minutes)})) as $days
| ($days | max_by(.minutes)) as $peak
| ([[$deadlines[] | select(.due > 0) | .work / .due] | max // 0, $rules.minutes_per_day] | min | ceil) as $needed
| [ ($days[] | select(.minutes > $rules.minutes_per_day) | "load: \(.minutes) minutes on \(.date), \($rules.minutes_per_day) are the limit"),
    (if $peak != null and $peak.minutes <= $rules.minutes_per_day and $peak.minutes > $needed + 60
     then "balance: \($peak.minutes) minutes on \($peak.date), where \($needed) a day would do" else empty end) ] as $loads

| ($estimates + $late + $gaps + $loads) as $reasons
| { session_id: $workspace.session_id,
    result_type: (if $reasons != [] then "needs_revision" elif $impossible then "capacity_limited_plan" else "approved_plan" end),
    revision_reasons: (if $reasons == [] then [$deadlines[] | select(.work > .holds) | "capacity: \(.work) minutes of work up to \($first + .due | date), where \(.holds) fit"] else $reasons end),
    plan_rows: $rows,
    validation_report: {coverage_ok: ($short + $invented == []), date_range_ok: ($late == []), load_balance_ok: ($loads == [])} }
