# Pages, structure, code blocks and passages of what `pdf_text` read. An engine that sees fonts says which lines are
# headings and which are code. For other engines, both are recognized by the text alone.

# Code is recognized by how a line begins and ends, not by brackets, because prose has them too.
def is_prose:
  test("^\\s*[A-Za-z•-][^=(){}\\[\\]_]* [a-z]+ [a-z]+ [a-z]+ [a-z]+ [a-z]+")
  or test("^\\s*[A-Z][a-z]+ [a-z]+ .*[a-z][.!?]$");
def is_python:
  test("^\\s*(def|class|import|from|return|raise|assert|async|await|with)\\b.*[:()=_.\\[]")
  or test("^\\s*(elif|for|while|if|except|@\\w+)\\b.*[:()=_.\\[]")
  or test("^\\s*(else|try|finally|pass|break|continue):?$|^\\s*return \\S+( [-+<>=*/]+ .*)?$")
  or test("^\\s*[a-z_][\\w.\\[\\]\"']*(: [\\w\\[\\], |]+)? ?[-+|*/]?= ?[^=]")
  or test("^\\s*[a-z_][\\w.]*\\([^ ]*\\)?[,:]?$|^\\s*[a-z_]+: [A-Za-z_\\[\\]]+$")
  or test("^\\s*(#|//|\"\"\") ?\\S|\"\"\"$");
def is_sql:
  test("\\b(CREATE (TABLE|INDEX|UNIQUE)|INSERT INTO|ALTER TABLE|PRIMARY KEY|NOT NULL|REFERENCES|SELECT .*FROM)\\b");
def is_braced:
  test("^\\s*(const|let|var|function|public|private|static|#include)\\b.*[;{(>]|=>|^\\s*\\w+(\\.\\w+)*\\(.*\\);$|;$")
  or test("^\\s*[\\[\\]{}()]+[,;)]*$|^\\s*\\{ ?\"[^\"]+\":|^\\s*\"[^\"]+\": ?.*[,{}\\[\\]\"0-9]$");
def is_shell:
  test("^\\s*(\\$ |git (clone|checkout|pull) |cd |(pip|npm|apt|cargo) install|docker |curl |python3? -m|createdb )")
  or test("^\\s*[A-Z_]{4,}=\\S+ ");
def is_yaml: test("^\\s*- (name|uses|run): |^\\s*[a-z_-]+:(\\s*\\[.*\\])?$");
def is_code: (is_prose | not) and (is_python or is_sql or is_braced or is_shell or is_yaml);

# Runs of code lines, at least 3; up to two others that are no prose may stand between them.
def code_blocks:
  def closed:
    if (.block | length) >= 3 then .found += [.block] else . end | .block = [] | .between = [];
  def is_between($line):
    .block != [] and (.between | length) < 2 and ($line | is_prose | not) and ($line | length) < 100;
  reduce (split("\n") | . + [""])[] as $line ({block: [], between: [], found: []};
    if ($line | is_code) then .block += .between + [$line] | .between = []
    elif is_between($line) then .between += [$line]
    else closed end)
  | closed | .found[];

def language:
  if test("(^|\n)\\s*(def \\w+\\(|from [\\w.]+ import |class \\w+.*:|@\\w+|assert |raise |elif |except )") then "python"
  elif test("\\b(CREATE (TABLE|INDEX)|INSERT INTO|ALTER TABLE|PRIMARY KEY|SELECT\\b[^\n]*\\bFROM)\\b") then "sql"
  elif test("(^|\n)\\s*(const|let|var|function)\\b|=> ?\\{") then "javascript"
  elif test("(^|\n)\\s*- (run|name|uses):") then "yaml"
  elif test("(^|\n)\\s*(\\$ |git clone|cd \\w|(pip|npm|apt|cargo) install|docker |curl |python3? -m)") then "bash"
  elif test("(^|\n)\\s*\\{? ?\"[^\"\n]+\": ?") then "json"
  elif test("(^|\n)\\s*[a-z_-]+:(\\s*\\[.*\\])?(\n|$)") then "yaml"
  elif test("#include|int main\\(") then "c"
  elif test("public (static )?(class|void)|System\\.out") then "java"
  elif test("(^|\n)\\s*\\w+ = |(^|\n)\\s*return\\b") then "python"
  else "unknown" end;

def trimmed: gsub("\\s+"; " ") | ltrimstr(" ") | rtrimstr(" ");

# Lines that look like headings, but no code with a comment, no line of a table or of contents, and no item of a list.
def headings($code_lines):
  def is_item: test("^[0-9]+[.)]? +[A-Z]");
  [ .[] | .number as $page | (.text | split("\n")) as $lines | range($lines | length) as $i | $lines[$i]
    | select($code_lines[$page | tostring][trimmed] | not)
    | select((is_item and ($lines[$i + 1:][:1] + ($lines[:$i] | .[-1:]) | any(.[]; is_item))) | not)
    | ( capture("^(?<mark>#+|[0-9]+(\\.[0-9]+)*\\.?) +(?<title>[A-Z][^.;:]{2,70})$"),
        (capture("^(?<title>Appendix [A-Z]:? .{2,70})$") + {mark: "1"}) )
    | select(.title | test("\\S {2,}\\S") | not)
    | (.mark | if startswith("#") then length else rtrimstr(".") | split(".") | length end) as $level
    | {title, page: $page, level: $level} ];
def unnumbered: sub("^(#+|[0-9]+(\\.[0-9]+)*\\.?) +"; "");

# The lines at the edge of most pages, such as a running title; page numbers do not count.
def running:
  length as $pages
  | [ .[].text | split("\n") | map(trimmed | gsub("[0-9]+"; "0") | select(. != "")) | unique[] ]
  | group_by(.) | map(select($pages > 2 and length * 2 > $pages) | .[0]);

def ends_sentence: test("[.!?:][\")”’]*$");

# The sentences of a paragraph: whole ones, which begin with a capital or at a bullet, and end with full stop or colon.
# An item of a list without a full stop is kept whole.
def said:
  test("^[•–*-] ") as $is_item
  | sub("^([•–*-]|[0-9]+[.)]) +"; "")
  | gsub("(?<word>[^ ]+?)(?<end>[.!?][\")”’]*) +(?<next>[A-Z0-9“\"(])";
      if .word | test("^[(“\"]?(e\\.g|i\\.e|etc|cf|vs|No|Fig|Dr|Mr|Mrs|approx|[A-Z])$")
      then "\(.word)\(.end) \(.next)" else "\(.word)\(.end)\n\(.next)" end)
  | if $is_item and (ends_sentence | not)
    then select(test("\\S+ \\S+ \\S+")) | {kind: "item", text: .}
    else
      split("\n") | to_entries[]
      | select((.value | test("^[A-Z0-9“\"(]")) or (.key == 0 and $is_item))
      | .value | select(ends_sentence and test("[A-Za-z]+ .*[a-z]+ .*[a-z]+ "))
      | {kind: "sentence", text: .}
    end;

# The texts of a paragraph's lines: one, or if no sentence ends in it, the items of a list that has lost its bullets.
# What the end of the page may have cut off is left out.
def paragraphs($is_last):
  (join(" ") | trimmed) as $text
  | [$text | splits(" [•–*-] +")] as $parts
  | if ($text | ends_sentence) or ($text | test("^([•–*-]|[0-9]+[.)]) |[.!?] [A-Z]")) then $text
    elif ($parts | length) > 2 then $parts[1:] | (if $is_last then .[:-1] else . end)[] | "• \(.)"
    elif length > 1 then
      reduce .[] as $line ([];
        if . != [] and ($line | test("^[A-Z0-9“\"(]") | not) then .[-1] += " " + $line else . + [$line] end)
      | select(length > 1) | (if $is_last then .[:-1] else . end)[]
      | select(test("^[A-Z0-9“\"(]")) | "• \(.)"
    else $text end;

# What is said in prose, the items of lists and the rows of tables, with their page and the titles of their section.
# Code, headings and running titles are left out: a test fixture says nothing about the work.
def passages($pages; $sections; $code_lines):
  ($pages | running) as $running
  # the one heading above all others is the title of the document, and no section
  | ($sections | map(.level) | (min // 1) as $top | map(select(. == $top))
    | if length == 1 then $top else $top - 1 end) as $document
  | ([$sections[] | {key: (.title | trimmed | unnumbered), value: {title, level}}] | from_entries) as $titles
  | def closed($is_last):
      if .lines == [] then .
      else .page as $page | .section as $section
        | .found += [.lines | paragraphs($is_last) | said | {page: $page, kind, section: $section, text}]
        | .lines = [] end;
    def closed: closed(false);
    # a line of a row whose cells are wrapped is none
    def is_row: length > 2 or all(.[]; length < 17);
    def row($cells):
      .found += [{page, kind: "row", section, text: ($cells | join(" | "))}];
    # without the number at the end of a page
    def lines: .text | sub("\\s*(\n\\s*[0-9]+\\s*)?$"; "") | split("\n")[];
    reduce ($pages[] | .number as $page | (lines, null) | {page: $page, line: (. // ""), is_last: (. == null)}) as $at
      ({page: 1, section: [], levels: [], lines: [], found: []};
      $at.page as $page | $at.line as $line
      | ($line | trimmed) as $text
      | ($titles[$text | unnumbered]) as $heading
      | ($line | test("^\\s*([•–*-]|[0-9]+[.)]) ")) as $is_item
      | (if $heading != null or $text == "" or $is_item then closed($at.is_last) else . end)
      | .page = $page
      | if $heading != null then
          ([.levels | to_entries[] | select(.value < $heading.level) | .key] | length) as $keep
          | .levels = .levels[:$keep] | .section = .section[:$keep]
          | if $heading.level > $document then .levels += [$heading.level] | .section += [$heading.title] else . end
        elif $text == "" or any($running[]; . == ($text | gsub("[0-9]+"; "0"))) then .
        elif $code_lines[$page | tostring][$text] or ($text | test("[─-╿]")) then closed
        else ([$line | splits(" {2,}") | trimmed | select(. != "")]) as $cells
          | if ($cells | length) < 2 then .lines += [$text]
            else closed | if ($cells | is_row) then row($cells) else . end end
        end)
  | closed | .found;

# A letter of another script says as much as several Latin ones.
def other_letters:
  [.[].text | explode[]]
  | ([.[] | select(. >= 880 and . < 8192 or . >= 11904 and . < 64256)] | length) as $other
  | ([.[] | select(. >= 65 and . < 91 or . >= 97 and . < 123)] | length) as $latin
  | select($other * 3 > $latin)
  | "many of its letters are not Latin: an evaluator without a model looks for the English words of criteria.toml,"
    + " and finds little";

.text as $text
| ([ $text.pages[] | .number as $page
     | (if .code then .code[].content | split("\n") | select(length >= 3) else .text | code_blocks end)
     | {content: join("\n"), page_number: $page, line_count: length} | .language = (.content | language) ]) as $blocks
# lines that are code, by page: those in a fixed-width font, or those that look like it
| ([ $text.pages[] | { key: (.number | tostring), value: (
       [ (if .code then .code[].content | split("\n")[]
          else .text | (code_blocks[], (split("\n")[] | select(is_code))) end)
         | {key: trimmed, value: true} ] | from_entries) } ] | from_entries) as $code_lines
| ([($text.pages | headings($code_lines)), ($text.headings // []), $text.outline] | max_by(length)) as $sections
| { file_path: .request.pdf_path,
    engine: $text.engine,
    total_pages: $text.total_pages,
    warnings: ($text.warnings + [$text.pages | other_letters]),
    text_content: ([$text.pages[] | {key: (.number | tostring), value: .text}] | from_entries),
    code_blocks: $blocks,
    structure: {sections: $sections},
    passages: passages($text.pages; $sections; $code_lines) }
