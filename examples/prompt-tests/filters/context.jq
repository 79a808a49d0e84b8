def trimmed: gsub("^\\s+|\\s+$"; "");
{ userPrompt: (if .extraction.userPromptPath then .prompted | trimmed else .extraction.userPrompt end),
  promptUnderTest: ([.imports[] | trimmed] | join("\n\n")),
  assertions: [.extraction.assertions | to_entries[] | {id: (.key + 1), requirement: .value}] }
