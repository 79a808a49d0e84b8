# A result agent in a hurry: in every fourth run it takes only "will" and "must" for duties. Thresholds are for agents like this one.
(if .run % 4 == 0 then "will|must" else "will|must|should|has to|have to|needs to|need to" end) as $duty
| [ .context.userPrompt
    | gsub("\\s+"; " ") | gsub("(?<end>[.!?]) "; "\(.end)\n") | split("\n")[]
    | capture("(?<who>\\b[A-Z]\\w+) (?:\($duty)) (?<what>[^?]+?)[.!]?\\s*$")
    | "- \(.who): \(.what)" ]
| if . == [] then "No actions." else join("\n") end
| gsub("Brightwater( Holdings)?"; "the client")
