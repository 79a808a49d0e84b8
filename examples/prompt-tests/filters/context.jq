def texts: [.] | flatten | map(gsub("^\\s+|\\s+$"; "")) | join("\n\n");
{ userPrompt: (if .extraction.userPromptPath then .prompted | texts else .extraction.userPrompt end),
  promptUnderTest: (.imports | texts),
  assertions: [.extraction.assertions | to_entries[] | {id: (.key + 1), requirement: .value}] }
