include "duties";
# A result agent in a hurry: in every fourth run it takes only "will" and "must" for duties. Thresholds are for
# agents like this one.
.run as $run
| [ .context.userPrompt | if $run % 4 == 0 then duties("will|must") else all_duties end | "- \(.who): \(.what)" ]
| if . == [] then "No actions." else join("\n") end
| gsub("Brightwater( Holdings)?"; "the client")
