# The name of each date's day. 1970-01-01 was a Thursday.
[ $final.plan_rows[].date | {key: ., value: (["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][("\(.)T00:00:00Z" | fromdateiso8601) / 86400 | floor | . % 7])} ] | from_entries
