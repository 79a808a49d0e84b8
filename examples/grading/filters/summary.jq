# What a manifest's run came to: a line per submission.
{ submissions: (.entries | length),
  graded: ([.entries[] | select(.status == "complete")] | length),
  partial: [.entries[] | select(.status == "partial") | .workspace],
  failed: [.entries[] | select(.status != "complete" and .status != "partial") | {workspace, error}] }
