//! Tools as templates: how often each is called, with which input, and what it returns.

use super::text::{
    CODE, DIFF, HISTORY, JSON, LISTING, MATCHES, PATHS, PROSE, Random, Shape, TESTS,
};

/// Templates for `Writer::fill`, in which `%0` is a path, `%1` a text of one of the shapes, `%2` a
/// part of the file, `%3` the same part with line numbers, `%4` the whole file.
pub(super) struct Tool {
    /// Calls of this tool in a hundred calls.
    share: usize,
    pub(super) name: &'static str,
    pub(super) shapes: &'static [Shape],
    /// Bytes of the text and of the part: the median, and the spread as in `Random::around`.
    pub(super) bytes: (u64, u64),
    pub(super) input: &'static str,
    pub(super) result: &'static str,
    /// The result again in structured form, or a bare string if the call failed.
    pub(super) twin: &'static str,
}

/// Shapes of the outputs of commands.
pub(super) const PRINTS: &[Shape] = &[LISTING, TESTS, DIFF, HISTORY, JSON, MATCHES, CODE];

const TOOLS: &[Tool] = &[
    Tool {
        share: 29,
        name: "Bash",
        shapes: PRINTS,
        bytes: (320, 10),
        input: r#""command":"cd %0 && %w %w --%w=%i 2>&1 | tail -n 200","description":"%s""#,
        result: "%1",
        twin: r#"{"stdout":"%1","stderr":"","interrupted":false,"isImage":false}"#,
    },
    Tool {
        share: 5,
        name: "Bash",
        shapes: &[TESTS],
        bytes: (250, 8),
        input: r#""command":"make %i""#,
        result: r"Exit code 1\n%1",
        twin: r#""Error: Exit code 1\n%1""#,
    },
    Tool {
        share: 22,
        name: "Read",
        shapes: &[],
        bytes: (2300, 8),
        input: r#""file_path":"/home/dev/work/%0""#,
        result: "%3",
        twin: r#"{"type":"text","file":{"filePath":"%0","content":"%2","numLines":%n,"startLine":1,"totalLines":%n}}"#,
    },
    Tool {
        share: 19,
        name: "Edit",
        shapes: &[CODE],
        bytes: (270, 6),
        input: r#""file_path":"/home/dev/work/%0","old_string":"%2","new_string":"%1""#,
        result: "The file /home/dev/work/%0 has been updated successfully.",
        twin: r#"{"filePath":"%0","oldString":"%2","newString":"%1","originalFile":"%4","structuredPatch":[{"oldStart":%n,"oldLines":2,"newStart":%n,"newLines":2,"lines":["-%2","+%1"]}],"userModified":false,"replaceAll":false}"#,
    },
    Tool {
        share: 12,
        name: "Grep",
        shapes: &[MATCHES, MATCHES, PATHS],
        bytes: (300, 9),
        input: r#""pattern":"%i","path":"/home/dev/work/%0","output_mode":"content","-n":true"#,
        result: "%1",
        twin: r#"{"mode":"content","numFiles":0,"filenames":[],"content":"%1","numLines":%n}"#,
    },
    Tool {
        share: 2,
        name: "Write",
        shapes: &[CODE],
        bytes: (4800, 5),
        input: r#""file_path":"/home/dev/work/%0","content":"%1""#,
        result: "File created successfully at: /home/dev/work/%0",
        twin: r#"{"type":"create","filePath":"%0","content":"%1","structuredPatch":[],"originalFile":null}"#,
    },
    Tool {
        share: 9,
        name: "TaskUpdate",
        shapes: &[],
        bytes: (1, 1),
        input: r#""taskId":"%d","status":"completed""#,
        result: "Updated task #%d status",
        twin: r#"{"success":true,"updatedFields":["status"],"statusChange":{"from":"pending","to":"completed"}}"#,
    },
    Tool {
        share: 2,
        name: "Task",
        shapes: &[PROSE],
        bytes: (4000, 4),
        input: r#""description":"%w %i","prompt":"%s. %s: %p. %s. %s.","subagent_type":"Explore""#,
        result: "%1",
        twin: r#"{"status":"completed","agentId":"a%h","content":[{"type":"text","text":"%1"}],"totalDurationMs":8%e,"totalTokens":4%e,"totalToolUseCount":%d}"#,
    },
];

/// Records of the progress of a tool, and of a command. `%0` is the output up to now.
pub(super) const PROGRESS: &[&str] = &[HOOK];
pub(super) const PRINTED: &[&str] = &[HOOK, BASH, BASH];

const HOOK: &str = r#"{"type":"hook_progress","hookEvent":"PostToolUse","hookName":"PostToolUse:Bash","command":"./hooks/after.sh"}"#;
const BASH: &str = r#"{"type":"bash_progress","output":"%0","fullOutput":"%0","elapsedTimeSeconds":%d,"totalLines":%d}"#;

/// Draws a tool, as often as its share says.
pub(super) fn draw(random: &mut Random) -> &'static Tool {
    let mut left = random.below(TOOLS.iter().map(|tool| tool.share).sum());
    let drawn = TOOLS.iter().find(|tool| {
        let found = left < tool.share;
        left = left.saturating_sub(tool.share);
        found
    });
    drawn.expect("less than all shares together")
}
