//! Classifies tools by their names, with one list for the tools of every agent.

use crate::closed_enum::closed_enum;

closed_enum! {
    /// What a tool does.
    ToolKind {
        /// Reads a file.
        Read = "read",
        /// Changes a part of a file.
        Edit = "edit",
        /// Creates, replaces, moves or deletes a file.
        Write = "write",
        /// Runs a command or code, or handles one that runs.
        Execute = "execute",
        /// Finds files or text, or lists a folder.
        Search = "search",
        /// Searches the web, fetches a page or controls a browser.
        Web = "web",
        /// Keeps a plan or a list of tasks.
        Plan = "plan",
        /// Starts another agent, or communicates with one.
        Agent = "agent",
        /// A tool of an MCP server.
        Mcp = "mcp",
        /// Any tool whose name is not known.
        Other = "other",
    }
}

/// Names as the agents write them, in lower case without separators.
const NAMES: &[(ToolKind, &[&str])] = &[
    (
        ToolKind::Read,
        &[
            "read",
            "readfile",
            "readmanyfiles",
            "readfiles",
            "view",
            "viewimage",
            "viewfile",
            "readmediafile",
            "notebookread",
            "cat",
            "openfile",
            "getfile",
            "readlints",
            "readimage",
            "viewfileoutline",
            "viewcodeitem",
            "geterrors",
            "readfilev2",
            "fsread",
        ],
    ),
    (
        ToolKind::Edit,
        &[
            "edit",
            "multiedit",
            "notebookedit",
            "applypatch",
            "replace",
            "strreplace",
            "strreplacefile",
            "strreplaceeditor",
            "editfile",
            "searchreplace",
            "applydiff",
            "insert",
            "insertedit",
            "replaceinfile",
            "editnotebook",
            "replacefilecontent",
            "multireplacefilecontent",
            "undoedit",
            "patch",
            "fswrite",
            "hashlineedit",
            "replacestring",
            "replacestringinfile",
            "multireplacestring",
            "multireplacestringinfile",
            "inserteditintofile",
            "editfilev2",
            "texteditor",
            "editor",
            "applyfilediffs",
            "fimedit",
            "fspatch",
            "fileeditor",
        ],
    ),
    (
        ToolKind::Write,
        &[
            "write",
            "writefile",
            "create",
            "createfile",
            "writetofile",
            "save",
            "append",
            "delete",
            "deletefile",
            "newfile",
            "fscreate",
            "move",
            "createdirectory",
            "copypath",
            "deletepath",
            "movepath",
        ],
    ),
    (
        ToolKind::Execute,
        &[
            "bash",
            "shell",
            "shellcommand",
            "runcommands",
            "runcommandinterminal",
            "execcommand",
            "exec",
            "runshellcommand",
            "execute",
            "terminal",
            "runterminalcmd",
            "runterminalcommand",
            "powershell",
            "writestdin",
            "bashoutput",
            "killshell",
            "localshell",
            "executecommand",
            "runcommand",
            "killbash",
            "readbash",
            "writebash",
            "stopbash",
            "process",
            "executebash",
            "commandstatus",
            "python",
            "ipython",
            "codeinterpreter",
            "unifiedexec",
            "readpowershell",
            "stoppowershell",
            "sendcommandinput",
            "runterminal",
            "shellexec",
            "runintheterminal",
            "taskoutput",
            "taskstop",
            "monitor",
            "runinterminal",
            "getterminaloutput",
            "runtests",
            "runterminalcommandv2",
            "readshellcommandoutput",
            "writetolongrunningshellcommand",
            "execshell",
            "executeshellcommand",
        ],
    ),
    (
        ToolKind::Search,
        &[
            "grep",
            "glob",
            "ls",
            "list",
            "search",
            "searchfilecontent",
            "find",
            "findfiles",
            "listdirectory",
            "listdir",
            "grepsearch",
            "codebasesearch",
            "filesearch",
            "searchfiles",
            "listfiles",
            "toolsearch",
            "semanticsearch",
            "finder",
            "lsp",
            "codesearch",
            "listcodedefinitionnames",
            "rg",
            "globsearch",
            "findbyname",
            "findtextinfiles",
            "searchcodebase",
            "listcodeusages",
            "findpath",
            "globfilesearch",
            "ripgreprawsearch",
            "fileglob",
            "fileglobv2",
            "grepfiles",
            "fssearch",
            "searchcontent",
        ],
    ),
    (
        ToolKind::Web,
        &[
            "webfetch",
            "websearch",
            "readdocs",
            "browserlogs",
            "googlewebsearch",
            "fetch",
            "browser",
            "fetchurl",
            "searchweb",
            "readurlcontent",
            "browseraction",
            "readwebpage",
            "webreader",
            "browsersubagent",
            "fetchwebpage",
        ],
    ),
    (
        ToolKind::Plan,
        &[
            "todowrite",
            "todoread",
            "updateplan",
            "addsubgoal",
            "updatesubgoal",
            "exitplanmode",
            "enterplanmode",
            "todo",
            "writetodos",
            "todolist",
            "settodolist",
            "taskcreate",
            "taskupdate",
            "tasklist",
            "taskget",
            "updatetodo",
            "updatetodolist",
            "plan",
            "createplan",
            "reportintent",
            "taskboundary",
            "managetodolist",
        ],
    ),
    (
        ToolKind::Agent,
        &[
            "task",
            "agent",
            "spawnagent",
            "spawnagentinline",
            "spawnagents",
            "waitagent",
            "closeagent",
            "sendinput",
            "delegatetask",
            "subagent",
            "sendmessage",
            "newtask",
            "sessionsspawn",
            "sessionssend",
            "resumeagent",
            "runsubagent",
            "oracle",
            "wait",
            "sessionsyield",
            "readagent",
            "teamcreate",
            "createsubagent",
        ],
    ),
];

/// What VS Code and Continue put before the names of their own tools.
const OWN_PREFIXES: &[&str] = &["copilot", "builtin"];

impl ToolKind {
    /// Returns the kind of the tool that a log calls `name`.
    pub fn from_name(name: &str) -> Self {
        // The extension that is a part of Goose.
        let name = name.strip_prefix("developer__").unwrap_or(name);
        if name.starts_with("mcp_") || name.contains("__") {
            return Self::Mcp;
        }

        let plain: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|letter| letter.to_ascii_lowercase())
            .collect();
        let plain = plain.strip_suffix("tool").filter(|rest| !rest.is_empty()).unwrap_or(&plain);
        let own = OWN_PREFIXES.iter().find_map(|prefix| plain.strip_prefix(prefix));
        let plain = own.unwrap_or(plain);
        for (kind, names) in NAMES {
            if names.contains(&plain) {
                return *kind;
            }
        }
        Self::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_agent_are_told() {
        for (name, kind) in [
            ("Bash", ToolKind::Execute),
            ("run_shell_command", ToolKind::Execute),
            ("exec_command", ToolKind::Execute),
            ("apply_patch", ToolKind::Edit),
            ("MultiEdit", ToolKind::Edit),
            ("editor", ToolKind::Edit),
            ("run_commands", ToolKind::Execute),
            ("run_command_in_terminal", ToolKind::Execute),
            ("write_file", ToolKind::Write),
            ("search_file_content", ToolKind::Search),
            ("google_web_search", ToolKind::Web),
            ("TodoWrite", ToolKind::Plan),
            ("Task", ToolKind::Agent),
            ("mcp__github__create_issue", ToolKind::Mcp),
            ("ReadFile", ToolKind::Read),
            ("copilot_readFile", ToolKind::Read),
            ("run_in_terminal", ToolKind::Execute),
            ("builtin_grep_search", ToolKind::Search),
            ("developer__shell", ToolKind::Execute),
            ("tool", ToolKind::Other),
            ("", ToolKind::Other),
        ] {
            assert_eq!(ToolKind::from_name(name), kind, "{name}");
        }
    }

    #[test]
    fn a_name_is_listed_once() {
        let mut all: Vec<_> = NAMES.iter().flat_map(|(_, names)| names.iter()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
