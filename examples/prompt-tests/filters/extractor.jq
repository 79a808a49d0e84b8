# The embedded extractor. It reads test files of one form:
#   import "PATH"                      one line each; also: import NAME from "PATH"
#   """ … """                          the user prompt; or: userPrompt = "…", or: userPrompt = import "PATH"
#   - Given …, should …                one item each; indented lines go on with it
# What stands within the user prompt is none of these.
(.test | gsub("\r"; "") | split("\"\"\"")) as $parts
| ($parts | length >= 3) as $has_block
| ((if $has_block then $parts[:1] + $parts[2:] else $parts[:1] end) | join("\n")) as $around
| ($around | gsub("\n[ \t]+(?<more>[^-\\s][^\n]*)"; " \(.more)") | split("\n")) as $lines
| { userPrompt:
      (if $has_block then $parts[1] | gsub("^\\s+|\\s+$"; "")
       else [$lines[] | capture("^userPrompt\\s*[=:]\\s*\"(?<text>[^\"]+)\"").text] | first // ""
       end),
    importPaths: [$lines[] | capture("^import\\s+([@\\w]+\\s+from\\s+)?[\"'`](?<path>[^\"'`]+)[\"'`]").path],
    assertions: [$lines[] | capture("^\\s*[-*] (?<text>Given .+?)\\s*$").text] }
  + ([$lines[] | capture("^userPrompt\\s*[=:]\\s*import\\s+[\"'`](?<path>[^\"'`]+)[\"'`]").path]
     | if . == [] then {} else {userPromptPath: .[0]} end)
