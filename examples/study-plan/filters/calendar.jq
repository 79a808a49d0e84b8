# The plan as iCalendar (RFC 5545). The sessions of a day are events at local time, one after another with breaks. A
# midterm takes the whole day.
include "lib";
def compact: gsub("[-:]"; "");
def two: "0\(.)"[-2:];
def clock: "\(. / 60 | floor | two)\(. % 60 | two)00";
def text: gsub("(?<c>[\\\\;,])"; "\\\(.c)") | gsub("\\s*\n\\s*"; "\\n") | gsub("[\\x00-\\x1f\\x7f]"; "");
# A line has at most 75 bytes. The next one continues it after a space.
def fold:
  reduce (explode[] | [.] | implode) as $c ({lines: [], line: "", size: 0};
    ($c | utf8bytelength) as $bytes
    | if .size + $bytes > 75 then {lines: (.lines + [.line]), line: " \($c)", size: (1 + $bytes)}
      else .line += $c | .size += $bytes end)
  | .lines + [.line] | join("\r\n");
($params.first_session | split(":") | (.[0] | tonumber) * 60 + (.[1] | tonumber)) as $begin
| 10 as $break
| ($run.timestamp | compact | sub("\\.[0-9]+"; "")) as $stamp
| [ "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Milepost//Study plan//EN", "CALSCALE:GREGORIAN",
    "X-WR-CALNAME:Study plan",
    ( $final.plan_rows | group_by(.date)[]
      | [.[] | select(.topic == "Midterm" or .estimated_minutes > 0)] as $rows
      # A day that would pass midnight begins earlier, and has no breaks if it must.
      | ([$rows[].estimated_minutes] | add // 0) as $all
      | ([$break, (1439 - $all) / ($rows | length + 1) | floor] | min) as $pause
      | ([$begin, 1439 - $all - $pause * ($rows | length)] | min) as $from
      | foreach ($rows | to_entries[]) as $row ({at: $from}; .begin = .at
          | .at += (if $row.value.estimated_minutes > 0 then $row.value.estimated_minutes + $pause else 0 end);
          . as $time | $row.value
          | (.date | compact) as $date
          | "BEGIN:VEVENT",
            "UID:\(.date)-\($row.key + 1)-\($workspace.session_id)@study-plan",
            "DTSTAMP:\($stamp)",
            (if .topic == "Midterm"
             then "DTSTART;VALUE=DATE:\($date)", "DTEND;VALUE=DATE:\(.date | day + 1 | date | compact)",
                  "SUMMARY:\("Midterm: \(.course)" | text)", "TRANSP:OPAQUE"
             else "DTSTART:\($date)T\($time.begin | clock)",
                  "DTEND:\($date)T\($time.begin + .estimated_minutes | clock)",
                  "SUMMARY:\("\(.course): \(.task_description)" | text)",
                  ( "\(.estimated_minutes) minutes, priority \(.priority)\nMaterial: \(.source_files | join(", "))"
                    | "DESCRIPTION:\(text)" )
             end),
            "CATEGORIES:\(.course | text)",
            "END:VEVENT") ),
    "END:VCALENDAR" ]
| map(fold + "\r\n") | add
