//! Finds the secret that a command prints and nothing else, in the output of a call and below a prompt:
//!
//! ```text
//! $ vault kv get -field=password secret/db
//! Quay#91side
//! ```

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::Regex;

use super::command_pairs::is_public_name;
use super::env::{self, SETTING};
use super::names::{Strength, announced_secret};
use super::pattern::PrefixPattern;
use super::phrases::is_word_phrase;
use super::scan::{Rank, SecretScan};

/// Number of bytes of the line of a command that are examined.
const MAX_COMMAND_BYTES: usize = 1000;

/// Number of bytes of an output that are examined.
const MAX_OUTPUT_BYTES: usize = 4 << 10;

/// A command that prints a secret. The group of its regex is the name of what it prints.
pub(super) struct PrintingCommand {
    pub(super) anchor: &'static str,
    source: &'static str,
    /// Whether the command also prints other things, so that the name has to announce a secret.
    needs_secret_name: bool,
    /// `None` if the source is not a regex.
    compiled: OnceLock<Option<Regex>>,
}

/// Creates a rule for a command that prints secrets, unless the name says something else.
const fn secret(anchor: &'static str, source: &'static str) -> PrintingCommand {
    PrintingCommand { anchor, source, needs_secret_name: false, compiled: OnceLock::new() }
}

/// Creates a rule for a command that prints values of any name.
const fn named(anchor: &'static str, source: &'static str) -> PrintingCommand {
    PrintingCommand { anchor, source, needs_secret_name: true, compiled: OnceLock::new() }
}

/// All commands that print nothing but a value.
#[rustfmt::skip]
pub(super) static PRINTING_COMMANDS: [PrintingCommand; 33] = [
    secret("kv get", r"(?:vault|bao) kv get\s(?:\S+\s+)*?-field[= ](\S+)"),
    secret("vault read", r"vault read\s(?:\S+\s+)*?-field[= ](\S+)"),
    secret("vault print token", r"vault print token()"),
    secret("pass show", r"(?:go)?pass show\s+(?:-\S+\s+)*(\S+)"),
    secret("op read", r"op read\s+(?:-\S+\s+)*(\S+)"),
    secret("op item get", r"op item get\s.*--fields?[= ](?:label=|type=)?(\S+)"),
    secret("get-secret-value", r"secretsmanager get-secret-value\s.*()(?:--output[= ]text|--query[= ]\S*SecretString)"),
    secret("get-parameter", r"ssm get-parameters?\s.*--with-decryption\b.*()--output[= ]text"),
    secret("get-parameter", r"ssm get-parameters?\s.*--output[= ]text\b.*()--with-decryption"),
    secret("get-login-password", r"get-login-password()"),
    secret("auth print-", r"gcloud auth (?:application-default )?print-(?:access|identity)-token()"),
    secret("secrets versions access", r"secrets versions access\s.*--secret[= ](\S+)"),
    secret("keyvault secret show", r"keyvault secret show\s.*(?:-n|--name)[= ](\S+).*(?:-o|--output)[= ]tsv"),
    secret("get-access-token", r"get-access-token\s.*()(?:-o|--output)[= ]tsv"),
    secret("/run/secrets/", r"(?:cat|head(?: -\S+)*|less|more)\s+(?:/var)?/run/secrets/(\S+)"),
    named("jq -", r#"jq\s+(?:-[a-zA-Z]*r[a-zA-Z]*|--raw-output)\s+["']?[^"'\s|]*?\.([A-Za-z0-9_-]+)["']?(?:\s|$)"#),
    named("yq -", r#"yq\s+(?:e\s+)?(?:-\S+\s+)*["']?[^"'\s|]*?\.([A-Za-z0-9_-]+)["']?(?:\s|$)"#),
    secret("kubectl ", r"kubectl\s.*get secrets?\s.*\.data\.([A-Za-z0-9_-]+)"),
    secret("kubectl ", r"kubectl\s.*create token()"),
    named("tenv ", r"printenv\s+(\w+)"),
    named("echo $", r"echo\s+\$\{?(\w+)\}?(?:\s|$)"),
    named("echo \"$", r#"echo\s+"\$\{?(\w+)\}?""#),
    secret("-generic-password", r"find-generic-password\s.*-[a-z]*w\b()"),
    secret("secret-tool lookup", r"secret-tool lookup()"),
    secret("keyring get", r"keyring get\s+\S+\s+\S+()"),
    named("ig:get ", r"config:get\s+(\S+)"),
    named("ig get ", r"config get\s+(?:-\S+\s+)*(\S+)"),
    named("aws configure", r"configure get\s+(\S+)"),
    secret("auth token", r"(?:gh|glab) auth token()"),
    named("secrets get", r"secrets get\s+(\S+).*--plain"),
    secret("bw get password", r"bw get password()"),
    secret("lpass show", r"lpass show\s.*--password()"),
    named("t -raw ", r"output -raw\s+(\S+)"),
];

/// The anchor of a command that filters the environment.
pub(super) const FILTER_ANCHOR: &str = "v | grep ";

/// Environments that a command filters by a word for secrets.
static FILTERED_ENVIRONMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[;&|]\s*)(?:env|printenv|set|export(?: -p)?)\s*\|\s*[efz]?grep\s[^|;&]*(?i:pass|secret|token|key|cred|auth|pw)")
        .ok()
});

/// The prompt of a shell.
static PROMPT: PrefixPattern = PrefixPattern::new(r"[^\n$#%❯]{0,80}[$#%❯] ");

impl PrintingCommand {
    /// Returns the kind of the secret that the last command of a line prints, or `None` if it prints
    /// something else.
    fn printed_kind(&self, command: &str) -> Option<&'static str> {
        if !command.contains(self.anchor) {
            return None;
        }
        let regex = self.compiled.get_or_init(|| {
            // No other command follows that prints something else.
            const FILTERS: &str = "tr|base64|head|tail|cut|sed|awk|xargs|openssl|jq|rev";
            let source = self.source;
            Regex::new(&format!(
                r"(?:^|[;&|]\s*|\s)(?:{source})[^|;&<>]*(?:2>\S+\s*)?(?:\|\s*(?:{FILTERS})\b[^|;&<>]*)*(?:;\s*echo\s*)?$"
            ))
            .ok()
        });
        let found = regex.as_ref()?.captures(command)?;
        let path = found.get(1).map_or("", |name| name.as_str()).trim_matches(['"', '\'']);
        let name = path.rsplit(['/', ':']).next().unwrap_or_default();
        match announced_secret(name) {
            Some((kind, _)) => Some(kind),
            // The name of a database is often that of its password.
            None => (!self.needs_secret_name && (name == "db" || !is_public_name(name)))
                .then_some("secret"),
        }
    }
}

/// Masks the secret in the output of a command that prints nothing else.
pub(super) fn mask_output(scan: &mut SecretScan<'_>, command: &str, output: Range<usize>) {
    let command = command.trim_ascii();
    if command.len() > MAX_COMMAND_BYTES {
        return;
    }
    let output_text = scan.text_from(output.start, output.len().min(MAX_OUTPUT_BYTES));
    // Some agents write the code and the time of a call before its output.
    let lead = output_text.rfind("Output:\n").map_or(0, |at| at + "Output:\n".len());
    let printed = output_text.get(lead..).unwrap_or_default();
    let start = output.start + lead;
    // An earlier command of the line may print something before it.
    let is_alone = !command.contains([';', '&', '\n']);
    let mut lines = printed.lines().filter(|line| !line.trim_ascii().is_empty());
    let line = if is_alone { lines.next() } else { lines.next_back() };
    let value = line.unwrap_or_default().trim_ascii();
    let last_line = command.lines().next_back().unwrap_or_default();
    if is_printed_secret(value)
        && let Some(kind) = PRINTING_COMMANDS.iter().find_map(|rule| rule.printed_kind(last_line))
    {
        let at = value.as_ptr() as usize - printed.as_ptr() as usize;
        scan.add_secret(start + at, start + at + value.len(), kind, Rank::Around);
    }
    if last_line.contains("grep")
        && FILTERED_ENVIRONMENT.as_ref().is_some_and(|env| env.is_match(last_line))
    {
        mask_environment(scan, start, printed);
    }
}

/// Returns whether a line is a secret and not a message about one.
fn is_printed_secret(line: &str) -> bool {
    let is_word = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_graphic());
    let is_message = line.ends_with([':', '.', ',']);
    (is_word && !is_message || is_word_phrase(line)) && env::is_secret(line, Strength::Password)
}

/// Masks the values of an environment that contains only names of secrets.
fn mask_environment(scan: &mut SecretScan<'_>, start: usize, printed: &str) {
    let mut line_start = start;
    for line in printed.split('\n') {
        if let Some(name) = SETTING.at_start(line).and_then(|found| found.get(1))
            && let Some((_, value)) = line.split_at_checked(name.end() + 1)
        {
            let value = value.trim_matches(['"', '\'', '\r']);
            let kind = announced_secret(name.as_str()).map_or("env_value", |(kind, _)| kind);
            if !is_public_name(name.as_str()) && env::is_secret(value, Strength::Secret) {
                let value_start = line_start + line.rfind(value).unwrap_or_default();
                scan.add_secret(value_start, value_start + value.len(), kind, Rank::Around);
            }
        }
        line_start += line.len() + 1;
    }
}

/// Masks the output below the prompt of the command at `at`.
pub(super) fn mask_output_below(scan: &mut SecretScan<'_>, at: usize) {
    if at < scan.command_end {
        return;
    }
    let line_start = scan.run_start(at, MAX_COMMAND_BYTES, |byte| byte != b'\n');
    let line_end = scan.skip_while(at, MAX_COMMAND_BYTES, |byte| byte != b'\n');
    scan.command_end = line_end;
    let line = scan.slice(line_start, line_end);
    let Some(prompt) = PROMPT.at_start(line).and_then(|found| found.get(0)) else { return };
    let below = scan.text_from(line_end + 1, MAX_OUTPUT_BYTES);
    let mut length = 0;
    for line in below.split_inclusive('\n') {
        if PROMPT.at_start(line).is_some() {
            break;
        }
        length += line.len();
    }
    mask_output(
        scan,
        line.get(prompt.end()..).unwrap_or_default(),
        line_end + 1..line_end + 1 + length,
    );
}
