# Pages, structure and code blocks of what `pdf_text` read. An engine that sees fonts says which lines are headings, and which are set
# as code is; of one that does not, both are told by the text alone.

# Code is told by how a line begins and ends, not by a bracket in it, which prose has too.
def is_prose: test("^\\s*[A-Za-z•-][^=(){}\\[\\]_]* [a-z]+ [a-z]+ [a-z]+ [a-z]+ [a-z]+") or test("^\\s*[A-Z][a-z]+ [a-z]+ .*[a-z][.!?]$");
def is_code:
  (is_prose | not) and (
    test("^\\s*(def|class|import|from|return|raise|assert|async|await|with|elif|for|while|if|except|@\\w+)\\b.*[:()=_.\\[]")
    or test("^\\s*(else|try|finally|pass|break|continue):?$|^\\s*return \\S+( [-+<>=*/]+ .*)?$")
    or test("\\b(CREATE (TABLE|INDEX|UNIQUE)|INSERT INTO|ALTER TABLE|PRIMARY KEY|NOT NULL|REFERENCES|SELECT .*FROM)\\b")
    or test("^\\s*(const|let|var|function|public|private|static|#include)\\b.*[;{(>]|=>|^\\s*\\w+(\\.\\w+)*\\(.*\\);$|;$")
    or test("^\\s*[\\[\\]{}()]+[,;)]*$|^\\s*\\{ ?\"[^\"]+\":|^\\s*\"[^\"]+\": ?.*[,{}\\[\\]\"0-9]$")
    or test("^\\s*[a-z_][\\w.\\[\\]\"']*(: [\\w\\[\\], |]+)? ?[-+|*/]?= ?[^=]|^\\s*[a-z_][\\w.]*\\([^ ]*\\)?[,:]?$|^\\s*[a-z_]+: [A-Za-z_\\[\\]]+$")
    or test("^\\s*(\\$ |git (clone|checkout|pull) |cd |(pip|npm|apt|cargo) install|docker |curl |python3? -m|createdb )|^\\s*[A-Z_]{4,}=\\S+ ")
    or test("^\\s*- (name|uses|run): |^\\s*[a-z_-]+:(\\s*\\[.*\\])?$")
    or test("^\\s*(#|//|\"\"\") ?\\S|\"\"\"$"));

# Runs of code lines, at least 3; up to two others that are no prose may stand between them.
def code_blocks:
  def closed: if (.block | length) >= 3 then .found += [.block] else . end | .block = [] | .between = [];
  reduce (split("\n") | . + [""])[] as $line ({block: [], between: [], found: []};
    if ($line | is_code) then .block += .between + [$line] | .between = []
    elif .block != [] and (.between | length) < 2 and ($line | is_prose | not) and ($line | length) < 100 then .between += [$line]
    else closed end)
  | closed | .found[];

def language:
  if test("(^|\n)\\s*(def \\w+\\(|from [\\w.]+ import |class \\w+.*:|@\\w+|assert |raise |elif |except )") then "python"
  elif test("\\b(CREATE (TABLE|INDEX)|INSERT INTO|ALTER TABLE|PRIMARY KEY|SELECT\\b[^\n]*\\bFROM)\\b") then "sql"
  elif test("(^|\n)\\s*(const|let|var|function)\\b|=> ?\\{") then "javascript"
  elif test("(^|\n)\\s*(\\$ |git clone|cd \\w|(pip|npm|apt|cargo) install|docker |curl |python3? -m)") and (test("(^|\n)\\s*- (run|name|uses):") | not) then "bash"
  elif test("(^|\n)\\s*\\{? ?\"[^\"\n]+\": ?") then "json"
  elif test("(^|\n)\\s*(- (name|uses|run):|[a-z_-]+:(\\s*\\[.*\\])?(\n|$))") then "yaml"
  elif test("#include|int main\\(") then "c"
  elif test("public (static )?(class|void)|System\\.out") then "java"
  elif test("(^|\n)\\s*\\w+ = |(^|\n)\\s*return\\b") then "python"
  else "unknown" end;

# lines that look like headings
def headings:
  [ .[] | .number as $page | .text | split("\n")[]
    | (capture("^(?<mark>#+|[0-9]+(\\.[0-9]+)*\\.?) +(?<title>[A-Z][^.;:]{2,70})$"), (capture("^(?<title>Appendix [A-Z]:? .{2,70})$") + {mark: "1"}))
    | {title, page: $page, level: (if .mark | startswith("#") then .mark | length else .mark | rtrimstr(".") | split(".") | length end)} ];

.text as $text
| { file_path: .request.pdf_path,
    engine: $text.engine,
    total_pages: $text.total_pages,
    warnings: $text.warnings,
    text_content: ([$text.pages[] | {key: (.number | tostring), value: .text}] | from_entries),
    code_blocks: [ $text.pages[] | .number as $page
      | (if .code then .code[].content | split("\n") | select(length >= 3) else .text | code_blocks end)
      | {content: join("\n"), page_number: $page, line_count: length} | .language = (.content | language) ],
    structure: {sections: ([($text.pages | headings), ($text.headings // []), $text.outline] | max_by(length))} }
