//! The templates of `init`, embedded from Milepost's repository.

use serde::Serialize;

/// A new project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Initiated {
    /// The name of the template.
    pub template: String,
    /// The description of the template.
    pub about: String,
    /// The project's folder, as given.
    pub(crate) folder: String,
    /// The new files, in the project.
    pub files: Vec<String>,
    /// The commands to run next.
    pub next: Vec<String>,
}

/// A file of a template: its path in the project and its content.
pub(super) type TemplateFile = (&'static str, &'static [u8]);

/// A template of a project.
pub(super) struct Template {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) files: &'static [TemplateFile],
    /// The schemas to write, for editors.
    pub(super) schemas: &'static [&'static str],
}

/// Embeds files of a folder of Milepost's repository. `as` is the path in the project, if it is another one.
macro_rules! repository {
    ($folder:literal: $($path:literal $(as $place:literal)?),* $(,)?) => {
        &[$((
            repository!(@ $path $($place)?),
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../..", $folder, "/", $path)),
        )),*]
    };
    (@ $path:literal) => { $path };
    (@ $path:literal $place:literal) => { $place };
}

pub(super) const TEMPLATES: &[Template] = &[
    Template {
        name: "ifc",
        about: "a building model to an Excel and a PDF report",
        files: repository!["":
            "examples/building-model/README.md" as "README.md",
            "examples/claude-code/.mcp.json" as "claude-code/.mcp.json",
            "examples/claude-code/README.md" as "claude-code/README.md",
            "examples/claude-code/batch-processor.md" as "claude-code/batch-processor.md",
            "examples/claude-code/orchestrator.md" as "claude-code/orchestrator.md",
            "milepost.toml",
            "stages/1_parse.toml",
            "stages/2_batch.toml",
            "stages/3_classify.toml",
            "stages/4_generate.toml",
            "schemas/all.schema.json",
            "schemas/answer.schema.json",
            "schemas/batches.schema.json",
            "schemas/changes.schema.json",
            "schemas/classified.schema.json",
            "schemas/corrections.schema.json",
            "schemas/parsed.schema.json",
            "schemas/plans.schema.json",
            "schemas/report.schema.json",
            "rules/elements.toml",
            "rules/labels.toml",
            "filters/compare.jq",
            "filters/plans.jq",
            "filters/question.jq",
            "filters/record.jq",
            "filters/report.jq",
            "prompts/batch-processor.md",
            "templates/plans.svg",
            "templates/report.md",
            "templates/report.xlsx.toml",
            "workspace/inputs/corrections.csv",
            "workspace/inputs/sample.ifc",
        ],
        schemas: &["project", "stage", "rules", "workbook"],
    },
    Template {
        name: "grading",
        about: "submissions graded by a table of criteria, with a report for each",
        files: repository!["/examples/grading":
            "README.md",
            "bad/broken.json",
            "bad/broken.pdf",
            "bad/cut.json",
            "bad/cut.pdf",
            "bad/locked.json",
            "bad/locked.pdf",
            "bad/no_pdf.json",
            "bad/no_self_grade.json",
            "bad/not_there.json",
            "bad/outside.json",
            "bad/scanned.json",
            "bad/scanned.pdf",
            "bad/self_grade_130.json",
            "bad/self_grade_below_0.json",
            "criteria.toml",
            "filters/checked.jq",
            "filters/context.jq",
            "filters/csv.jq",
            "filters/document.jq",
            "filters/evaluation.jq",
            "filters/evaluator.jq",
            "filters/placeholder.jq",
            "filters/scoring.jq",
            "filters/summary.jq",
            "milepost.toml",
            "prices.toml",
            "prompts/api_evaluation.md",
            "prompts/architecture_evaluation.md",
            "prompts/ci_evaluation.md",
            "prompts/code_quality_evaluation.md",
            "prompts/code_structure_evaluation.md",
            "prompts/configuration_evaluation.md",
            "prompts/cost_evaluation.md",
            "prompts/coverage_evaluation.md",
            "prompts/data_model_evaluation.md",
            "prompts/error_evaluation.md",
            "prompts/frame.md",
            "prompts/integration_test_evaluation.md",
            "prompts/performance_evaluation.md",
            "prompts/prd_evaluation.md",
            "prompts/readme_evaluation.md",
            "prompts/security_evaluation.md",
            "prompts/unit_test_evaluation.md",
            "prompts/version_control_evaluation.md",
            "report.png",
            "schemas/answer.schema.json",
            "schemas/checked.schema.json",
            "schemas/criteria.schema.json",
            "schemas/csv.schema.json",
            "schemas/document.schema.json",
            "schemas/evaluation.schema.json",
            "schemas/request.schema.json",
            "schemas/scoring.schema.json",
            "stages/1_validate.toml",
            "stages/2_parse.toml",
            "stages/3_evaluate.toml",
            "stages/4_score.toml",
            "stages/5_report.toml",
            "submissions.json",
            "submissions/milepost.toml",
            "submissions/shiftly.json",
            "submissions/shiftly.pdf",
            "submissions/stages/1_set.toml",
            "submissions/templates/submission.md",
            "submissions/tern.json",
            "submissions/tern.pdf",
            "submissions/workspace/inputs/larder.md",
            "submissions/workspace/inputs/shiftly.md",
            "submissions/workspace/inputs/tern.md",
            "templates/report.md",
            "workspace/inputs/grading_request.json",
            "workspace/inputs/submission.pdf",
            ".gitignore",
        ],
        schemas: &["project", "stage"],
    },
    Template {
        name: "study-plan",
        about: "syllabi to a plan of every day up to the last midterm",
        files: repository!["/examples/study-plan":
            "README.md",
            "bad/contract_violated.json",
            "bad/course_without_files.json",
            "bad/duplicate_course.json",
            "bad/midterm_in_the_past.json",
            "bad/missing_input.json",
            "bad/not_a_date.json",
            "bad/unreadable.pdf",
            "filters/calendar.jq",
            "filters/csv.jq",
            "filters/estimation.jq",
            "filters/evidence.jq",
            "filters/final.jq",
            "filters/history.jq",
            "filters/ingestion.jq",
            "filters/intake.jq",
            "filters/lib.jq",
            "filters/planner.jq",
            "filters/problems.jq",
            "filters/review.jq",
            "filters/to_estimation.jq",
            "filters/to_planner.jq",
            "filters/topics.jq",
            "filters/weeks.jq",
            "filters/windows.jq",
            "milepost.toml",
            "pictures/limited.png",
            "pictures/plan.png",
            "prompts/estimation.md",
            "prompts/ingestion.md",
            "prompts/planner.md",
            "schemas/chunks.schema.json",
            "schemas/estimates.schema.json",
            "schemas/estimation_answer.schema.json",
            "schemas/evidence.schema.json",
            "schemas/files.schema.json",
            "schemas/final.schema.json",
            "schemas/history.schema.json",
            "schemas/ingestion_answer.schema.json",
            "schemas/plan.schema.json",
            "schemas/request.schema.json",
            "schemas/rows.schema.json",
            "schemas/table.schema.json",
            "schemas/text.schema.json",
            "schemas/to_estimation.schema.json",
            "schemas/to_ingestion.schema.json",
            "schemas/to_planner.schema.json",
            "schemas/topics.schema.json",
            "stages/1_intake.toml",
            "stages/2_read.toml",
            "stages/3_window.toml",
            "stages/4_ingest.toml",
            "stages/5_collect.toml",
            "stages/6_dispatch.toml",
            "stages/7_plan.toml",
            "stages/8_approve.toml",
            "stages/9_export.toml",
            "templates/plan.md",
            "workspace/inputs/cell-biology-syllabus.md",
            "workspace/inputs/cell-biology-syllabus.pdf",
            "workspace/inputs/courses.json",
            "workspace/inputs/linear-algebra-exercises.md",
            "workspace/inputs/linear-algebra-exercises.pdf",
            "workspace/inputs/linear-algebra-syllabus.md",
            "workspace/inputs/linear-algebra-syllabus.pdf",
            "workspace/inputs/microeconomics-syllabus.md",
            "workspace/inputs/microeconomics-syllabus.pdf",
            "workspace/inputs/midterm-notice.md",
            "workspace/inputs/midterm-notice.pdf",
            ".gitignore",
        ],
        schemas: &["project", "stage"],
    },
    Template {
        name: "diagrams",
        about: "lesson cards to diagrams, drawn and judged until they are good enough",
        files: repository!["/examples/diagrams":
            "README.md",
            "bad/cannot_be_drawn.json",
            "bad/id_with_path.json",
            "bad/no_cards.json",
            "bad/not_json.json",
            "bad/one_id_twice.json",
            "course/lessons.json",
            "course/n5_maths_11.json",
            "course/n5_maths_13.json",
            "data/jsxgraph_patterns/algebra_patterns.json",
            "data/jsxgraph_patterns/geometry_patterns.json",
            "data/jsxgraph_patterns/scottish_color_palette.json",
            "data/jsxgraph_patterns/statistics_patterns.json",
            "filters/author.jq",
            "filters/batch_summary.jq",
            "filters/cards.jq",
            "filters/critic.jq",
            "filters/history.jq",
            "filters/result.jq",
            "milepost.toml",
            "pictures/jsxgraph.png",
            "pictures/lesson.png",
            "pictures/rounds.png",
            "prompts/diagram_generation_subagent.md",
            "prompts/visual_critic_subagent.md",
            "schemas/cards.schema.json",
            "schemas/critique.schema.json",
            "schemas/critique_history.schema.json",
            "schemas/diagram.schema.json",
            "schemas/history.schema.json",
            "schemas/lesson.schema.json",
            "schemas/render_answer.schema.json",
            "schemas/result.schema.json",
            "service/browser.js",
            "service/diagram.js",
            "service/letters.js",
            "service/package.json",
            "service/page.js",
            "service/plain.js",
            "service/png.js",
            "service/server.js",
            "stages/1_cards.toml",
            "stages/2_patterns.toml",
            "stages/3_author.toml",
            "stages/4_collect.toml",
            "workspace/inputs/n5_maths_12.json",
            ".gitignore",
        ],
        schemas: &["project", "stage"],
    },
    Template {
        name: "prompt-tests",
        about: "tests of a prompt, answered and judged several times, to a TAP file",
        files: repository!["/examples/prompt-tests":
            "README.md",
            "filters/context.jq",
            "filters/extractor.jq",
            "filters/hasty.jq",
            "filters/judge.jq",
            "filters/result.jq",
            "filters/results.jq",
            "milepost.toml",
            "pictures/run.svg",
            "prompts/extract.md",
            "prompts/judge.md",
            "prompts/result.md",
            "schemas/context.schema.json",
            "schemas/extraction.schema.json",
            "schemas/judge-answer.schema.json",
            "schemas/judgment.schema.json",
            "schemas/results.schema.json",
            "stages/1_extract.toml",
            "stages/2_context.toml",
            "stages/3_answer.toml",
            "stages/4_judge.toml",
            "stages/5_report.toml",
            "templates/results.tap",
            "tests/no-actions.md",
            "tests/quiet-note.md",
            "tests/wrong/absolute.md",
            "tests/wrong/empty-import.md",
            "tests/wrong/empty.md",
            "tests/wrong/leaves-project.md",
            "tests/wrong/missing-import.md",
            "tests/wrong/no-assertions.md",
            "tests/wrong/no-import.md",
            "tests/wrong/no-user-prompt.md",
            "under-test/house-style.md",
            "under-test/meeting-actions.md",
            "workspace/inputs/meeting-actions.md",
            ".gitignore",
        ],
        schemas: &["project", "stage"],
    },
    Template {
        name: "minimal",
        about: "two stages that run commands over text files",
        files: &[
            ("milepost.toml", MINIMAL.as_bytes()),
            ("stages/1_upper.toml", UPPER.as_bytes()),
            ("stages/2_join.toml", JOIN.as_bytes()),
            ("workspace/inputs/note_1.txt", b"the first milepost\n"),
            ("workspace/inputs/note_2.txt", b"the second\n"),
        ],
        schemas: &["project", "stage"],
    },
];

const MINIMAL: &str = r#"#:schema ./schemas/milepost/project.schema.json
name = "minimal"
"#;

const UPPER: &str = r#"#:schema ../schemas/milepost/stage.schema.json
description = "Each note in capitals"

[each.note]                              # a batch per file
path = "inputs/*.txt"

[step]
command = "tr a-z A-Z < {{ note.path }} > {{ paths.upper }}"

[outputs]
upper = "intermediate/{{ note.stem }}.txt"
"#;

const JOIN: &str = r#"#:schema ../schemas/milepost/stage.schema.json
description = "All notes in one file"

[inputs]
notes = "intermediate/*.txt"             # what the stage before wrote

[step]
command = "cat {{ paths.notes }} > {{ paths.all }}"

[outputs]
all = "outputs/all.txt"
"#;
