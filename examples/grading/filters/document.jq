# Pages, structure and code blocks. `.text` is what `pdf_text` read: {engine, total_pages, pages: [{number, text}], outline, warnings}
def is_blank: test("^\\s*$");
def is_page_number: test("^\\s*[0-9]+\\s*(/\\s*[0-9]+)?\\s*$");

# Code is told by how a line begins or ends, not by a bracket in it, which prose has too.
def is_code:
  test("^\\s*(def|class|import|from|return|raise|assert|async|await|with|elif|else:|try:|except|finally:|for .* in |while |if .*:$|@)\\b?.*")
    and (test("^\\s*(from|with|import|for|while|class|raise|return)\\b[^(:=\"._]*[.,]$") | not)
    and (test("[:()=_@.]|^\\s*(import|return|raise|try|else|pass)\\b") )
    and (test("^\\s*(from|with|for|if|while|class|import|return) [a-z]+ [a-z]+ [a-z]+ [a-z]+ ") | not)
  or test("^\\s*(create (table|index|unique)|insert into|select .* from|alter table|primary key|foreign key|check \\()"; "i")
  or test("^\\s*[\\[{}\\]][,;]?\\s*$|^\\s*\"[^\"]+\": ?.*[,{\\[\\]}\"0-9]$")
  or test("^\\s*[a-z_][a-z0-9_.\\[\\]\"']* ?[-+|*/]?= ?[^=]|^\\s*[a-z_][\\w.]*\\(.*\\)?[,:]?$")
  or test("^\\s*(\\$ |pip install|git clone|docker |curl |python3? -m|pytest\\b.*(-|/)|uv |make [a-z]+$)")
  or test("^\\s*- (name|uses|run):|^\\s*[a-z_-]+:(\\s*\\[.*\\]|\\s*[\\w./-]+)?$")
  or test("[;{]$|^\\s*[})\\]]+[,;]?$")
  or test("^\\s*(#|//) ");

# runs of code lines, at least 3; one line that is not code, but not a sentence's either, may stand between two that are
def code_blocks:
  def closed: if (.block | length) >= 3 then .found += [.block] else . end | .block = [] | .odd = [];
  reduce (.text | split("\n") | map(select(is_page_number | not)) | . + [""])[] as $line ({block: [], odd: [], found: []};
    if ($line | is_code) then .block += .odd + [$line] | .odd = []
    elif .block != [] and (.odd | length) < 2 and ($line | is_blank | not) and ($line | test("^\\s{2,}|^\\s*[\\w\"'(\\[.].*[,(\\[\\])\"'_=]") and length < 90) and ($line | test("[.!?]$") | not)
      then .odd += [$line]
    elif .block != [] and ($line | is_blank) and .odd == [] then .odd += [$line]
    else closed end)
  | closed | .found[];

def language:
  if test("(^|\n)\\s*(def \\w+\\(|from [\\w.]+ import |import \\w+|class \\w+.*:|@\\w+|assert |raise |return )") then "python"
  elif test("\\b(create table|insert into|alter table|create index|select\\b[^\n]*\\bfrom)\\b"; "i") then "sql"
  elif test("(^|\n)\\s*(\\$ |pip install|git clone|docker |curl |python3? -m)") then "bash"
  elif test("^\\s*[{\\[]") or test("\"[^\"]+\": ?") then "json"
  elif test("(^|\n)\\s*(- (name|uses|run):|[a-z_-]+:\\s*(\n|$))") then "yaml"
  elif test("#include|int main\\(") then "c"
  elif test("public (static )?(class|void)|System\\.out") then "java"
  elif test("\\b(const|let|function)\\b|=>") then "javascript"
  else "unknown" end;

# where the file has no bookmarks: lines that look like headings
def headings:
  [ .[] | .number as $page | .text | split("\n")[]
    | capture("^(?<mark>#+|[0-9]+(\\.[0-9]+)*\\.?) +(?<title>[A-Z][^.;]{2,70})$")
    | {title, page: $page, level: (if (.mark | startswith("#")) then (.mark | length) else (.mark | rtrimstr(".") | split(".") | length) end)} ];

.text as $text
| { file_path: .request.pdf_path,
    engine: $text.engine,
    total_pages: $text.total_pages,
    warnings: ($text.warnings // []),
    text_content: ([$text.pages[] | {key: (.number | tostring), value: .text}] | from_entries),
    code_blocks: [ $text.pages[] | .number as $page | code_blocks
      | {content: join("\n"), page_number: $page, line_count: length} | .language = (.content | language) ],
    structure: {sections: (if ($text.outline // []) != [] then [$text.outline[] | {title, page, level}] else ($text.pages | headings) end)} }
