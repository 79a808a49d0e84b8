# The plan by weeks and days, for reading. 1970-01-01 was a Thursday.
include "lib";
# 90 -> "1 h 30 min"
def hours:
  [(. / 60 | floor | select(. > 0) | "\(.) h"), (. % 60 | select(. > 0) | "\(.) min")]
  | if . == [] then "0 min" else join(" ") end;
# 2027-03-01 -> "1 March"
def spoken:
  ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
   "December"] as $months
  | "\(.[8:] | tonumber) \($months[(.[5:7] | tonumber) - 1])";
def weekday: ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"][day % 7];
([$final.topics[] | {key: "\(.course)\t\(.topic)", value: (.difficulty == "hard")}] | from_entries) as $hard
| [ $final.plan_rows | group_by(.date)[]
  | { date: .[0].date, monday: (.[0].date | day | . - (. + 3) % 7),
      name: "\(.[0].date | weekday), \(.[0].date | spoken)", minutes: total(.estimated_minutes),
      midterms: [.[] | select(.topic == "Midterm") | .course],
      sessions: [.[] | select(.estimated_minutes > 0)
                 | {time: (.estimated_minutes | hours), course, task: .task_description,
                    notes: ([ (if .priority == "high" and .topic != "Revision" then "high priority" else empty end),
                              (if $hard["\(.course)\t\(.topic)"] then "hard" else empty end),
                              (if .status == "review" then "estimate uncertain" else empty end) ]
                            | join(", "))}] }
  | .time = (.minutes | hours) ]
| { hours: { limit: ($final.minutes_per_day | hours), all: ([$final.plan_rows[].estimated_minutes] | add | hours) },
    courses: [$final.courses[] | . + {day: "\(.midterm_date | weekday), \(.midterm_date | spoken)",
      planned: (.planned_minutes | hours), needed: (.estimated_minutes | hours),
      revision: (.revision_minutes | hours)}],
    uncovered: [$final.uncovered[] | . + {planned: (.planned_minutes | hours), needed: (.estimated_minutes | hours)}],
    from: ($final.start_date | spoken), to: "\($final.last_midterm_date | spoken) \($final.last_midterm_date[:4])",
    weeks: [group_by(.monday)[]
            | {name: "Week of \(.[0].monday | date | spoken)", time: (total(.minutes) | hours), days: .}] }
