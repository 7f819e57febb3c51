//! Writes conversations in the log formats of other agents, to measure how fast they are ingested.
//! Each agent is a table of templates. Lines and the shares of text in them follow real logs.

use std::io;
use std::path::Path;

use super::log::date;
use super::text::{Language, PROSE, Random, Writer};
use super::{Corpus, tools};

/// The log format of an agent. In the templates `%0` is the session's id, `%1` the time, `%2` a
/// text, `%3` the id of a call, `%4` its output, `%5` the time in milliseconds.
pub(crate) struct Agent {
    pub name: &'static str,
    /// The path of a log, before and after the session's id.
    file: (&'static str, &'static str),
    begin: &'static str,
    prompt: &'static str,
    thought: &'static str,
    call: &'static str,
    answer: &'static str,
    /// The text between two of the templates above.
    separator: &'static str,
    end: &'static str,
    /// Bytes of a session, smaller for logs that are one document.
    bytes: u64,
}

pub(crate) const AGENTS: &[Agent] = &[
    Agent {
        name: "codex",
        file: ("sessions/2026/06/26/rollout-2026-06-26T22-08-40-", ".jsonl"),
        begin: r#"{"timestamp":"%1","type":"session_meta","payload":{"id":"%0","timestamp":"%1","cwd":"/home/dev/work/harbor","originator":"codex-tui","cli_version":"0.144.1","source":"cli","model_provider":"openai","base_instructions":{"text":"You work in a terminal. %s. %s. %s."},"git":{"commit_hash":"%h","branch":"main"}}}"#,
        prompt: r#"{"timestamp":"%1","type":"event_msg","payload":{"type":"task_started","turn_id":"%u","started_at":1782511720,"model_context_window":258400,"collaboration_mode_kind":"default"}}
{"timestamp":"%1","type":"turn_context","payload":{"turn_id":"%u","cwd":"/home/dev/work/harbor","model":"gpt-5.3-codex","effort":"medium","approval_policy":"never","sandbox_policy":{"type":"danger-full-access"},"user_instructions":"%s. %s. %s. %s. %s. %s. %s. %s.","current_date":"2026-06-27","timezone":"Europe/Berlin"}}
{"timestamp":"%1","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"%2"}]}}
{"timestamp":"%1","type":"event_msg","payload":{"type":"user_message","message":"%2","images":[],"local_images":[],"text_elements":[]}}"#,
        thought: r#"{"timestamp":"%1","type":"response_item","payload":{"type":"reasoning","id":"rs_%l","summary":[{"type":"summary_text","text":"%2"}],"encrypted_content":"%l%l%l%l%l%l%l%l%l%l%l%l%l%l%l%l"}}
{"timestamp":"%1","type":"event_msg","payload":{"type":"agent_reasoning","text":"%2"}}"#,
        call: r#"{"timestamp":"%1","type":"response_item","payload":{"type":"function_call","id":"fc_%l","name":"exec_command","arguments":"{\"cmd\":\"cd %p && %w %w --%w=%i 2>&1 | tail -n 200\",\"workdir\":\"/home/dev/work/harbor\",\"yield_time_ms\":10000,\"max_output_tokens\":4000}","call_id":"call_%3"}}
{"timestamp":"%1","type":"response_item","payload":{"type":"function_call_output","call_id":"call_%3","output":"Chunk ID: %h\nWall time: 0.%e seconds\nProcess exited with code 0\nOriginal token count: %n\nOutput:\n%4"}}
{"timestamp":"%1","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1%e,"cached_input_tokens":1%e,"output_tokens":%n,"reasoning_output_tokens":%n,"total_tokens":2%e},"last_token_usage":{"input_tokens":1%e,"cached_input_tokens":1%e,"output_tokens":%n,"reasoning_output_tokens":%n,"total_tokens":1%e},"model_context_window":258400},"rate_limits":{"limit_id":"codex","limit_name":null,"primary":{"used_percent":4.0,"window_minutes":300,"resets_at":1782520000},"secondary":{"used_percent":12.0,"window_minutes":10080,"resets_at":1782900000},"credits":null,"plan_type":"pro"}}}"#,
        answer: r#"{"timestamp":"%1","type":"event_msg","payload":{"type":"agent_message","message":"%2","phase":"final","memory_citation":null}}
{"timestamp":"%1","type":"response_item","payload":{"type":"message","id":"msg_%l","role":"assistant","content":[{"type":"output_text","text":"%2"}]}}"#,
        separator: "\n",
        end: "\n",
        bytes: 700 << 10,
    },
    Agent {
        name: "opencode",
        file: ("export/", ".json"),
        begin: r#"{"info":{"id":"ses_%0","slug":"%w-%w","projectID":"%h%h%h","directory":"/home/dev/work/harbor","title":"%s","version":"1.18.6","time":{"created":%5,"updated":%5}},"messages":["#,
        prompt: r#"{"info":{"role":"user","time":{"created":%5},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4.6"},"id":"msg_%l","sessionID":"ses_%0"},"parts":[{"type":"text","text":"%2","id":"prt_%l","sessionID":"ses_%0","messageID":"msg_%3"}]}"#,
        thought: r#"{"info":{"role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/work/harbor","root":"/home/dev/work/harbor"},"cost":0.0%e,"tokens":{"total":1%e,"input":%n,"output":%n,"reasoning":%n,"cache":{"read":1%e,"write":%n}},"modelID":"claude-sonnet-4.6","providerID":"anthropic","time":{"created":%5,"completed":%5},"finish":"tool-calls","id":"msg_%l","sessionID":"ses_%0"},"parts":[{"type":"step-start","id":"prt_%l","sessionID":"ses_%0","messageID":"msg_%l"},{"type":"reasoning","text":"%2","time":{"start":%5,"end":%5},"id":"prt_%l","sessionID":"ses_%0","messageID":"msg_%l"}]}"#,
        call: r#"{"info":{"role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/work/harbor","root":"/home/dev/work/harbor"},"cost":0.0%e,"tokens":{"total":1%e,"input":%n,"output":%n,"reasoning":%n,"cache":{"read":1%e,"write":%n}},"modelID":"claude-sonnet-4.6","providerID":"anthropic","time":{"created":%5,"completed":%5},"finish":"tool-calls","id":"msg_%l","sessionID":"ses_%0"},"parts":[{"type":"step-start","id":"prt_%l","sessionID":"ses_%0","messageID":"msg_%l"},{"type":"tool","tool":"bash","callID":"toolu_%3","state":{"status":"completed","input":{"command":"cd %p && %w %w --%w=%i 2>&1 | tail -n 200","description":"%s"},"output":"%4","title":"%s","metadata":{"output":"%4","exit":0,"description":"%s","truncated":false},"time":{"start":%5,"end":%5}},"id":"prt_%l","sessionID":"ses_%0","messageID":"msg_%l"},{"type":"step-finish","reason":"tool-calls","snapshot":"%h%h%h","cost":0.0%e,"tokens":{"total":1%e,"input":%n,"output":%n,"reasoning":%n,"cache":{"read":1%e,"write":%n}},"id":"prt_%l","sessionID":"ses_%0","messageID":"msg_%l"}]}"#,
        answer: r#"{"info":{"role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/work/harbor","root":"/home/dev/work/harbor"},"cost":0.0%e,"tokens":{"total":1%e,"input":%n,"output":%n,"reasoning":%n,"cache":{"read":1%e,"write":%n}},"modelID":"claude-sonnet-4.6","providerID":"anthropic","time":{"created":%5,"completed":%5},"finish":"stop","id":"msg_%l","sessionID":"ses_%0"},"parts":[{"type":"text","text":"%2","time":{"start":%5,"end":%5},"id":"prt_%l","sessionID":"ses_%0","messageID":"msg_%l"}]}"#,
        separator: ",",
        end: "]}",
        bytes: 400 << 10,
    },
    Agent {
        name: "openclaw",
        file: ("agents/main/sessions/", ".jsonl"),
        begin: r#"{"type":"session","version":3,"id":"%0","timestamp":"%1","cwd":"/home/dev/.openclaw/workspace"}"#,
        prompt: r#"{"type":"message","id":"%h","parentId":null,"timestamp":"%1","message":{"role":"user","content":[{"type":"text","text":"Conversation info (untrusted metadata):\n```json\n{\n  \"message_id\": \"%d\",\n  \"sender\": \"dev\"\n}\n```\n\n%2"}],"timestamp":%5}}"#,
        thought: r#"{"type":"message","id":"%h","parentId":null,"timestamp":"%1","message":{"role":"assistant","content":[{"type":"thinking","thinking":"%2","thinkingSignature":"%l%l%l%l%l%l"}],"api":"openai-responses","provider":"openai","model":"gpt-5.5","usage":{"input":%n,"output":%n,"cacheRead":1%e,"cacheWrite":0,"totalTokens":1%e,"cost":{"input":0.0%e,"output":0.0%e,"cacheRead":0.0%e,"cacheWrite":0.0,"total":0.0%e}},"stopReason":"toolUse","responseId":"resp_%l","timestamp":%5}}"#,
        call: r#"{"type":"message","id":"%h","parentId":null,"timestamp":"%1","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_%3","name":"exec","arguments":{"command":"cd %p && %w %w --%w=%i 2>&1 | tail -n 200","yieldMs":10000}}],"api":"openai-responses","provider":"openai","model":"gpt-5.5","usage":{"input":%n,"output":%n,"cacheRead":1%e,"cacheWrite":0,"totalTokens":1%e,"cost":{"input":0.0%e,"output":0.0%e,"cacheRead":0.0%e,"cacheWrite":0.0,"total":0.0%e}},"stopReason":"toolUse","responseId":"resp_%l","timestamp":%5}}
{"type":"message","id":"%h","parentId":null,"timestamp":"%1","message":{"role":"toolResult","toolCallId":"call_%3","toolName":"exec","content":[{"type":"text","text":"%4"}],"details":{"status":"completed","exitCode":0,"durationMs":8044,"aggregated":"%4","cwd":"/home/dev/work/harbor"},"isError":false,"timestamp":%5}}"#,
        answer: r#"{"type":"message","id":"%h","parentId":null,"timestamp":"%1","message":{"role":"assistant","content":[{"type":"text","text":"%2"}],"api":"openai-responses","provider":"openai","model":"gpt-5.5","usage":{"input":%n,"output":%n,"cacheRead":1%e,"cacheWrite":0,"totalTokens":1%e,"cost":{"input":0.0%e,"output":0.0%e,"cacheRead":0.0%e,"cacheWrite":0.0,"total":0.0%e}},"stopReason":"stop","responseId":"resp_%l","timestamp":%5}}"#,
        separator: "\n",
        end: "\n",
        bytes: 300 << 10,
    },
];

/// The size of the logs that were written.
pub(crate) struct Written {
    pub bytes: u64,
    pub sessions: u64,
}

impl Agent {
    /// Writes about `bytes` of logs below `dir`.
    pub(crate) fn generate(&self, dir: &Path, seed: u64, bytes: u64) -> io::Result<Written> {
        let mut random = Random(seed);
        let language = Language::new(&mut random);
        let mut written = Written { bytes: 0, sessions: 0 };
        while written.bytes < bytes {
            let number = usize::try_from(written.sessions).expect("few sessions");
            let id = Corpus::session_id(number);
            let path = dir.join(format!("{}{id}{}", self.file.0, self.file.1));
            let log = self.log(&id, &mut Writer::new(&language, Random(random.next())));
            std::fs::create_dir_all(path.parent().expect("a folder"))?;
            std::fs::write(&path, &log)?;
            written.bytes += log.len() as u64;
            written.sessions += 1;
        }
        Ok(written)
    }

    /// Returns the log of one conversation.
    fn log(&self, id: &str, writer: &mut Writer<'_>) -> String {
        let mut millis = 1_782_511_720_000;
        let mut log = String::new();
        let mut add = |template: &str, text: &str, output: &str, writer: &mut Writer<'_>| {
            millis += writer.random.around(1500, 8);
            let (time, call) = (date(millis), writer.random.letters(22));
            let given = [id, &time, text, &call, output, &millis.to_string()];
            writer.fill(template, &given, &mut log);
            log.len() as u64
        };
        add(self.begin, "", "", writer);
        let mut separator = if self.separator == "\n" { "\n" } else { "" };
        let mut bytes = 0;
        while bytes < self.bytes {
            let mut part = |template: &str, text: &str, output: &str, writer: &mut Writer<'_>| {
                let begun = std::mem::replace(&mut separator, self.separator);
                add(&format!("{begun}{template}"), text, output, writer)
            };
            let prompt = prose(writer, 70, 11);
            bytes = part(self.prompt, &prompt, "", writer);
            while bytes < self.bytes && writer.random.percent(88) {
                if writer.random.percent(40) {
                    let thought = prose(writer, 130, 7);
                    part(self.thought, &thought, "", writer);
                }
                let output = output(writer);
                bytes = part(self.call, "", &output, writer);
            }
            let answer = prose(writer, 330, 6);
            bytes = part(self.answer, &answer, "", writer);
        }
        add(self.end, "", "", writer);
        log
    }
}

fn prose(writer: &mut Writer<'_>, median: u64, quarters: u64) -> String {
    let bytes = writer.random.around(median, quarters);
    writer.text(PROSE, bytes, None)
}

/// Returns the output of a command.
fn output(writer: &mut Writer<'_>) -> String {
    let tool = tools::draw(&mut writer.random);
    let shapes = if tool.shapes.is_empty() { tools::PRINTS } else { tool.shapes };
    let shape = writer.random.pick(shapes);
    let bytes = writer.random.around(tool.bytes.0.max(300), tool.bytes.1).min(60_000);
    writer.text(shape, bytes, None)
}
