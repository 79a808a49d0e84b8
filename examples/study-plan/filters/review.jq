# PlanningReviewer -> Coordinator: the verdict, computed from the rows of any planner.
include "lib";
.to_planner as $in
| $in.planning_rules as $rules
| $rules.minutes_per_day as $limit
| .rows.rows as $rows
| ($rules.start_date | day) as $first
| ([$in.courses[].midterm_date | day] | max) as $last
# `due` is the first day without new topics: the first revision day of the course, else its midterm.
| [ $in.courses[] | .course_id as $id | . + {midterm: ((.midterm_date | day) - $first)}
    | . + {due: ([.midterm, ($rules.revision_sessions[] | select(.course_id == $id) | (.date | day) - $first)] | min)} ]
| ([.[] | {key: .course_id, value: .}] | from_entries) as $course
| ([$course[] | {key: .course_name, value: .}] | from_entries) as $named
| [$rows[] | select(.estimated_minutes > 0)] as $work
| [$work[] | select(.topic == "Revision")] as $revision
| [$work[] | select(.topic != "Revision")] as $study
| [$in.topic_estimates[] | select($course[.course_id] != null) | . + {due: $course[.course_id].due}] as $topics

# Estimates: one for each topic that was handed over, and none too low for how uncertain it is.
| [$to_estimation.course_topic_evidence[] | "\(.course_id): \(.topic)"] as $asked
| [$in.topic_estimates[] | "\(.course_id): \(.topic)"] as $given
| ([ ($asked - $given)[] | "estimate: \(.): no estimate was given" ]
  + [ ($given - $asked)[] | "estimate: \(.): nobody asked for this topic" ]
  + [ $given | group_by(.)[] | select(length > 1) | "estimate: \(.[0]): it is estimated \(length) times" ]
  + [ $topics[] | select(.confidence < 0.5) | . as $t
      | ([$topics[] | select(.course_id == $t.course_id and .confidence >= 0.5) | .estimated_minutes]
         | median) as $usual
      | select($usual != null and .estimated_minutes < $usual / 2)
      | "estimate: \(.course_id): \(.topic): \(.estimated_minutes) minutes at a confidence of \(.confidence), "
        + "where topics of this course take \($usual)" ]) as $estimates

# Dates: each from the first to the last midterm, and no work for a course on its midterm or later.
| [range($first; $last + 1) | date] as $dates
| ([ ($dates - [$rows[].date])[] | "dates: \(.) has no row" ]
  + [ ([$rows[].date] | unique) - $dates | .[] | "dates: \(.) is not between \($dates[0]) and \($dates[-1])" ]
  + [ if [$rows[].date] == ([$rows[].date] | sort) then empty else "dates: the rows are not in the order of dates" end ]
  + [ $in.courses[] | . as $c
      | select(all($rows[]; .date != $c.midterm_date or .course != $c.course_name or .topic != "Midterm"))
      | "dates: the midterm of \(.course_id) on \(.midterm_date) is not in the plan" ]
  + [ $work[] | select($named[.course] != null and .date >= $named[.course].midterm_date)
      | "dates: \(.topic) on \(.date) is too late for the midterm of \($named[.course].course_id)" ]) as $late

# Sessions: none over 90 minutes, none under 25 unless that is the whole topic.
| [ $study[] | . as $r | select(.estimated_minutes > 90
      or (.estimated_minutes < 25
          and all($topics[]; .topic != $r.topic or $course[.course_id].course_name != $r.course
                             or .estimated_minutes > $r.estimated_minutes)))
    | "session: \(.topic) has \(.estimated_minutes) minutes on \(.date), a session has 25 to 90" ] as $sessions

# Revision: a session of each course on its revision days, and no new topic on them.
| ([ $rules.revision_sessions[] | . as $s | $course[.course_id].course_name as $name
    | select(([$revision[] | select(.date == $s.date and .course == $name)] | total(.estimated_minutes)) < .minutes)
    | "revision: \(.course_id) has no \(.minutes) minutes of revision on \(.date)" ]
  + [ $study[] | select($named[.course] != null) | select((.date | day) - $first >= $named[.course].due
        and .date < $named[.course].midterm_date)
      | "revision: \(.topic) on \(.date), a revision day of \($named[.course].course_id)" ]) as $revisions

# Coverage: as many minutes as were estimated for each topic, and no topic that was not estimated.
| ($study | group_by([.course, .topic])
   | map({key: "\(.[0].course)\t\(.[0].topic)", value: total(.estimated_minutes)}) | from_entries) as $planned
| [$topics[] | . + {name: $course[.course_id].course_name}
   | . + {planned: ($planned["\(.name)\t\(.topic)"] // 0)}] as $cover
| [$cover[] | select(.planned < .estimated_minutes)] as $short
| (($planned | keys) - [$cover[] | "\(.name)\t\(.topic)"]
   | map("coverage: \(split("\t") | join(": ")) is not a topic of the estimates")) as $invented

# Capacity: up to each deadline no more work than its days hold. If it is close, sessions of 25 minutes or more may
# leave rests of days that hold none.
| ([range(0; $last - $first) as $at | ($first + $at | date) as $date
    | $limit - ([$work[] | select(.date == $date)] | total(.estimated_minutes))]) as $free
| [ [$topics[].due] | unique[] | . as $d
    | {due: $d, work: ([$topics[] | select(.due <= $d)] | total(.estimated_minutes)),
       holds: ($d * $limit
               - ([$rules.revision_sessions[] | select((.date | day) - $first < $d)] | total(.minutes)))} ]
| . as $deadlines
| [$deadlines[] | select(.work > 0.75 * .holds)] as $tight
| any($deadlines[]; .work > .holds) as $over
| ([ if $over or $tight != []
    then $short[] | . as $t | (.estimated_minutes - .planned) as $missing
      | [range(0; .due) | select($free[.] >= 50 and ($missing >= 25 or $t.planned == 0))]
      | select(. != [])
      | "coverage: \($t.course_id): \($t.topic): \($t.planned) of \($t.estimated_minutes) minutes are planned, "
        + "and \($first + .[0] | date) has \($free[.[0]]) minutes free"
    else $short[] | "coverage: \(.course_id): \(.topic): \(.planned) of \(.estimated_minutes) minutes are planned" end ]
  + $invented) as $gaps
# No topic of high priority is left out where a session of low priority, with what is free on its day, has room for it.
| [ $short[] | select(.planned == 0 and .priority == "high") | . as $t | ([25, .estimated_minutes] | min) as $least
    | [ $study[] | select(.priority == "low") | . as $r | ((.date | day) - $first) as $at
        | select($at < $t.due and $r.estimated_minutes + $free[$at] >= $least) ]
    | select(. != [] and ($over or $tight != []))
    | "coverage: \($t.course_id): \($t.topic) is left out for \(.[0].topic), which has low priority" ] as $wrong

# Load: no day above the limit. The most even load is a staircase: constant up to the deadline that needs most a day,
# then lower up to the next.
| ($work | group_by(.date) | map({date: .[0].date, minutes: total(.estimated_minutes)})) as $days
| [ $course[].midterm, $deadlines[].due | select(. > 0) ] | unique
| [ .[] as $d | {until: $d,
      work: (([$cover[] | select(.due <= $d)] | total([.planned, .estimated_minutes] | max))
             + ([$rules.revision_sessions[] | select((.date | day) - $first < $d)] | total(.minutes)))} ]
| . as $steps
| [ {until: 0, work: 0} | recurse(. as $from
      | [$steps[] | select(.until > $from.until)] | select(. != [])
      | max_by((.work - $from.work) / (.until - $from.until))
      | . + {from: $from.until, load: ((.work - $from.work) / (.until - $from.until) | ceil)})
    | select(.load) ] as $stairs
| [ ($days[] | select(.minutes > $limit) | "load: \(.minutes) minutes on \(.date), \($limit) are the limit"),
    ([ $days[] | select(.minutes <= $limit) | . as $d | ((.date | day) - $first) as $at
       | ([$rules.revision_sessions[] | select(.date == $d.date)] | total(.minutes)) as $fixed
       | ([([$stairs[] | select(.from <= $at and $at < .until) | .load][0] // 0), $fixed] | max) as $even
       | select(.minutes > $even + 60)
       | {minutes, even: $even, date} ]
     | max_by(.minutes - .even) | select(.)
     | "balance: \(.minutes) minutes on \(.date), where \(.even) a day would do") ] as $loads

| ($estimates + $late + $sessions + $revisions + $gaps + $wrong + $loads) as $reasons
| { session_id: $workspace.session_id,
    result_type: (if $reasons != [] then "needs_revision"
                  elif $short != [] then "capacity_limited_plan" else "approved_plan" end),
    revision_reasons: (if $reasons != [] then $reasons elif $short == [] then []
      else [ (if $over then $deadlines[] | select(.work > .holds) else $tight[-1] end)
             | "capacity: \(.work) minutes of work up to \($first + .due | date), where \(.holds) fit"
               + (if $over then "" else ", but not in sessions of at least 25 minutes" end) ] end),
    plan_rows: $rows,
    validation_report: {coverage_ok: ($short + $invented == []), date_range_ok: ($late == []),
                        load_balance_ok: ($loads == [])} }
