# A line for each row; files stand apart by semicolons. A spreadsheet runs no text of a model.
[ (["date", "course", "topic", "task_description", "estimated_minutes", "priority", "source_files", "status"] | @csv),
  ($final.plan_rows[]
    | [.date, .course, .topic, .task_description, .estimated_minutes, .priority, (.source_files | join(";")), .status]
    | map(escape_formula) | @csv)
] | join("\n") + "\n"
