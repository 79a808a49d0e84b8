# The embedded planner. It spreads the work over the days as evenly as the deadlines allow, in sessions of 25 to 90
# minutes.
# A course gets a share of each day by the work left for the days left. Topics keep the order of the syllabus. If there
# is not enough time, topics of low priority are left out.
include "lib";
def fives: (. / 5 | round) * 5;
{high: 0, medium: 1, low: 2} as $rank
| $to_planner as $in
| $in.planning_rules as $rules
| $rules.minutes_per_day as $limit
# After a draft that left out the wrong topics, those of high priority come first.
| any($rules.requested_changes[]; startswith("coverage:")) as $by_priority
# After a draft with an uneven load, courses with a near midterm get whole days earlier.
| (if any($rules.requested_changes[]; startswith("balance:")) then 0.6 else 0.8 end) as $share
| ([90, $limit] | min) as $longest
| ($rules.start_date | day) as $first
| [$rules.revision_sessions[] | . + {at: ((.date | day) - $first)}] as $revision
# `due` is the first day without new topics: the first revision day of the course, else its midterm.
| [ $in.courses[] | .course_id as $id | . + {midterm: ((.midterm_date | day) - $first)}
    | . + {due: ([.midterm, ($revision[] | select(.course_id == $id) | .at)] | min)} ]
| sort_by(.due) as $courses
| ([$courses[] | {key: .course_id, value: .due}] | from_entries) as $due
| ([$courses[].due] | unique) as $deadlines
| ([$courses[].midterm] | max) as $last
| [range(0; $last + 1) as $at | [$revision[] | select(.at == $at)] | total(.minutes)] as $revised
# By priority, a topic gets the minutes that the topics before it leave free before its deadline.
| [foreach ($in.topic_estimates[] | select($due[.course_id] != null)) as $t (0; . + 1;
    $t + {at: ., due: $due[$t.course_id]})]
| . as $all_topics
| reduce sort_by($rank[.priority], .due, .at)[] as $t ([];
    . as $taken
    | ([ $deadlines[] | select(. >= $t.due) | . as $d
         | $d * $limit - ($revised[:$d] | add // 0) - ([$taken[] | select(.due <= $d)] | total(.left)) ] | min) as $room
    | . + [$t + {left: ([$room, $t.estimated_minutes] | min)}])
| map(select(.left >= 25 or (.left > 0 and .left == .estimated_minutes)))
| sort_by((if $by_priority then $rank[.priority] else 0 end), .at) as $topics

# The length of a topic's next session, of about $wish minutes and at most $free. It leaves no rest below 25.
# 0: none fits.
| def session($wish; $free):
    ([$longest, $free] | min) as $most
    | ([[$wish, 25] | max | fives, $most] | min) as $size
    | if .left <= $most and .left - $size < 25 then .left
      elif $size < 25 then 0
      elif .left - $size >= 25 then $size
      elif .left - 25 >= 25 then [.left - 25, $most] | min
      else 0 end;
# Fills one day: the course with the most credit first, and another course after it if there is one.
def fill($at; $goal; $ids):
    ($limit - $revised[$at] - .today) as $free
    | ($goal - .today) as $wish
    | if $wish < (if .today + $revised[$at] == 0 then 12 else 25 end) then .
      else ($wish / ([$wish / 65 | round, 1] | max)) as $size
        | . as $state
        | [ $ids[] | . as $id
            | [ $state.topics[] | select(.course_id == $id and .left > 0)
                | . + {size: session($size; $free)} | select(.size > 0) ][0]
            | select(. != null) | . + {credit: ($state.credit[$id] - 1000 * ($state.used[$id] // 0))} ]
        | max_by(.credit) as $next
        | $state
        | if $next == null then .
          else .today += $next.size
            | .used[$next.course_id] += 1
            | .credit[$next.course_id] -= $next.size
            | .topics |= map(if .at == $next.at then .left -= $next.size else . end)
            | .sessions += [{at: $at, topic: $next.at, minutes: $next.size}]
            | fill($at; $goal; $ids)
          end
      end;
reduce range(0; $last) as $at ({topics: $topics, sessions: [], credit: ($due | map_values(0))};
    . as $state
    # The daily load that each deadline needs from here on. The highest of them is the load of this day.
    | [ $deadlines[] | select(. > $at) | . as $d
        | {until: $d, load: ((($revised[$at:$d] | add // 0)
                              + ([$state.topics[] | select(.due <= $d)] | total(.left))) / ($d - $at))} ]
    | . as $loads
    | (max_by(.load) // {until: 0, load: 0}) as $need
    # The first deadline that needs about as much: only courses up to it get sessions.
    | ([$loads[] | select(.load >= $share * $need.load) | .until][0] // 0) as $until
    | [ $courses[] | select(.due > $at and .due <= $until) | . as $c
        | {key: $c.course_id,
           value: (([$state.topics[] | select(.course_id == $c.course_id)] | total(.left)) / ($c.due - $at))}
        | select(.value > 0) ] as $rates
    | ([([$need.load, $limit] | min) - $revised[$at], 0] | max) as $goal
    | $state
    | reduce $rates[] as $r (.; .credit[$r.key] += $goal * $r.value / ($rates | total(.value)))
    | . + {today: 0, used: {}}
    | [$rates[].key] as $ids
    | [$ids[] | select($due[.] == $at + 1)] as $urgent
    | fill($at; $goal; $urgent) | fill($at; $goal; $ids) | fill($at; $limit - $revised[$at]; $urgent))
# The remaining time of each day goes to topics that lack time, by priority.
| def fill_rests:
    reduce ($all_topics | sort_by($rank[.priority], .due, .at)[]) as $t (.;
      reduce range(0; $t.due) as $at (.;
        ($limit - $revised[$at] - ([.[] | select(.at == $at)] | total(.minutes))) as $free
        | ($t.estimated_minutes - ([.[] | select(.topic == $t.at)] | total(.minutes))) as $missing
        | ([$free, $missing, $longest] | min) as $size
        | if $size >= 25 or ($size > 0 and $size == $t.estimated_minutes)
          then . + [{$at, topic: $t.at, minutes: $size}] else . end));
# A topic of high priority without any session takes the place of a session of low priority.
  def swap_low:
    ([$all_topics[] | select(.priority == "low") | .at]) as $low
    | reduce ($all_topics[] | select(.priority == "high")) as $t (.;
        if any(.[]; .topic == $t.at) then .
        else . as $all
          | [ range(0; length) as $i | $all[$i]
              | select(.at < $t.due and ([.topic] - $low == [])) | .at as $at
              | . + {$i, room: ([$limit - $revised[$at] - ([$all[] | select(.at == $at)] | total(.minutes)) + .minutes,
                                 $t.estimated_minutes, $longest] | min)}
              | select(.room >= ([25, $t.estimated_minutes] | min)) ][0] as $place
          | if $place == null then . else .[$place.i] = {at: $place.at, topic: $t.at, minutes: $place.room} end
        end);
  .sessions | fill_rests | swap_low | fill_rests
# Two sessions of a topic on one day are one, unless that is too long.
| group_by([.at, .topic])
| map(if (total(.minutes)) <= $longest then [.[0] + {minutes: total(.minutes)}] else . end | .[])
| . as $sessions
| [ $all_topics[] as $t | [$sessions[] | select(.topic == $t.at)] | to_entries[] as $s
    | {at: $s.value.at, part: ($s.key + 1), parts: length, minutes: $s.value.minutes, topic: $t} ] as $study
| ([$courses[] | {key: .course_id, value: .course_name}] | from_entries) as $names
| { rows: [
      range(0; $last + 1) as $at
      | ($first + $at | date) as $date
      | [ ( $courses[] | select(.midterm == $at)
            | {date: $date, course: .course_name, topic: "Midterm", task_description: "Midterm of \(.course_id)",
               estimated_minutes: 0, priority: "high", source_files: [], status: "planned"} ),
          ( $revision[] | select(.at == $at) | . as $r
            | [$in.topic_estimates[] | select(.course_id == $r.course_id and ([.topic] - $r.topics == []))] as $own
            | {date: $date, course: $names[.course_id], topic: "Revision",
               task_description: "Revise \(.topics | join("; "))", estimated_minutes: .minutes, priority: "high",
               source_files: ([$own[].source_files[]] | unique), status: "planned"} ),
          ( $courses[] | .course_id as $id | $study[] | select(.at == $at and .topic.course_id == $id)
            | {date: $date, course: $names[$id], topic: .topic.topic,
               task_description: "Study \(.topic.topic)\(
                 if .parts > 1 then ", part \(.part) of \(.parts)" else "" end)",
               estimated_minutes: .minutes, priority: .topic.priority, source_files: .topic.source_files,
               status: (if .topic.confidence < 0.5 then "review" else "planned" end)} ) ]
      | if . != [] then .[]
        else {date: $date, course: "", topic: "", task_description: "Free day", estimated_minutes: 0,
              priority: "low", source_files: [], status: "planned"} end ] }
