# A line for each row; files stand apart by semicolons.
[ (["date", "course", "topic", "task_description", "estimated_minutes", "priority", "source_files", "status"] | @csv),
  ($final.plan_rows[] | [.date, .course, .topic, .task_description, .estimated_minutes, .priority, (.source_files | join(";")), .status] | @csv)
] | join("\n") + "\n"
