//! The services of `tests/redact/services.txt`: each is masked as its row says, and the tables of
//! `docs/redaction.md` are made from these rows and from the rules. `UPDATE_DOCS=1` writes the page.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ingest::redact::{Redactor, SecretCounts, built_in_rules};

const SERVICES: &str = include_str!("../redact/services.txt");
const SECRETS: &str = include_str!("../redact/secrets.txt");

const RULES: &str = "
## Rules

Each row is a rule of the program, with a text that it masks and a text that looks alike and stays. In
what begins or announces a secret, `?` is any letter, digit, `_` or `-`, `#` a hexadecimal digit, `^` a
digit and `*` a `#`. Rules of the kind `any` decode a text for the other rules.
`sessions doctor --why-masked ID` tells which rule masked what in a session or an event.

| kind | what it recognizes | masked | stays |
|---|---|---|---|
";

/// Returns a text as code in a cell of a table.
fn code(text: &str) -> String {
    let line = text.replace('\n', "⏎").replace('\t', "⇥").replace('|', "\\|");
    let fence = if line.contains('`') { "``" } else { "`" };
    format!("{fence}{line}{fence}")
}

/// A value without a shape, as most services issue keys.
const SAMPLE: &str = "c7e41f0a92d85b3e6f174a0d9c2b58e3";

const LOGS: &str = "
## Secrets in the logs

The store has no secrets, but the logs that it was read from still do. `sessions secrets` lists them: one
line for each kind in a session, with the first event, the file, and whether the log still exists and the
session was pushed (what is pushed is masked). `--json` names every place: the event, and where its record
begins in the decompressed log, in bytes. Places are counted as `status` counts them. Copied history counts in
each log that has it. Secrets of the session's own values, such as its title, are counted, but have no event
and no time. An event may also have placeholders that were in the log before it was read. Sessions of other
machines and forgotten ones are not listed. In a path or an id that contains a secret it is masked, too.

The command exits with 1 if there are secrets, or if logs were read with `--no-redact`, whose secrets are not
known. So a hook or CI job can fail on them:

```sh
sessions secrets --since 24h --project harbor
```

A secret that was in a log may have been read by others: revoke it where it was issued.

### Replacing them

`sessions secrets --scrub` replaces the secrets in the agents' own logs and databases by the placeholders that an
ingest writes; `--project`, `--since` (logs with a secret written since) and `--kind` select. Without `--yes` it only
says for each log what it would replace, what would remain, and which logs it leaves out and why.

```sh
sessions secrets --scrub                  # what would be replaced
sessions secrets --scrub --yes            # replaces it; end the agents before
sessions secrets --restore-backup --yes   # puts the logs back
sessions secrets --forget-backup --yes    # removes the backup, in which the secrets still are
```

- **What changes.** Only parts of string values, also of JSON within strings. Lines, records, their order and
  every other byte stay, and so do the mode and the time of the file. Values that an agent sends back to its
  service or compares stay whole: signatures, encrypted reasoning, ids, hashes, pictures and files in base64;
  names of fields too.
- **Which secrets.** Each string is searched by the rules. What only an event announces, such as the output of
  `pass show`, is replaced in the strings of the same record. Then the new log is decoded and searched again:
  what an ingest still finds there *remains*, is counted by kind, and stays listed by `sessions secrets`.
- **Left out** are logs that a process has open (Linux), that changed within the last minute, or that change
  while they are read; links, hard links, read-only files and those of other users; compressed logs; sessions
  of several files, and of databases whose rows are not archived ([archive.md](archive.md)); lines that are not
  UTF-8; and a log that would be another session, or would be read otherwise, without the secret. In a line
  that is not JSON, the secrets of its whole text are replaced.
- **Backup.** Each log is first copied to `log-backup` in the folder of the store (folders 0700, files 0600), with
  its secrets. The copies stay until `--forget-backup`; `sessions secrets` says that they are there. The new log is
  written next to the old one, synced and renamed: a kill leaves one or the other. `--restore-backup` puts back
  logs that nothing changed since. By hand: `index` in the folder of a run says where each file came from,
  and `cp -p log-backup/RUN/1-NAME.bak PATH` puts it back. `forget` does not touch the backup, as it does not touch logs.
- **The store.** The next ingest reads these logs again. Ids, coordinates, counts, labels and copies stay as they
  were: `scrubbed.json` keeps the identities that records had before. A second store of the same logs reads
  them as logs that were rewritten.

An archive with `keep_logs = \"exact\"` loses what it has of a log that is scrubbed, and keeps logs that are gone with
their secrets until `keep_logs = \"masked\"` ([archive.md](archive.md)).

Agents keep more than their logs, such as histories of prompts, snapshots of files and debug output. Only the logs
that an ingest reads are searched. The command exits with 0 if none of the selected secrets remains in a log, and
with 1 otherwise.
";

const HEAD: &str = "# Redaction

Secrets are masked before anything is stored. A placeholder names the kind: `[REDACTED:github_token]`.
`sessions status` and `sessions doctor` count them by kind. Rules of your own are read from
`~/.config/sessions/redact.toml`. A changed rule masks what is already stored, too, before the next command or
server answers from the store: logs that are gone, sessions that came from a lake, labels and notes as well.
`sessions push` replaces what it published before ([team.md](team.md#what-is-published)). Names in problems with
files that are no logs go with the next `sessions compact`.

What is masked without the name of a service:

- private keys of PEM, OpenSSH, PGP and age, also behind the names and numbers that `grep` prints,
  without their first or last line, in base64, URL-encoded and in lines of HTML; the private numbers
  that `openssl rsa -text` prints; private members of JSON Web Keys and of RSA keys in XML; keys of Nostr
  if their checksum is right; keys of Bitcoin and seed phrases,
  in one line, numbered or one word a line, if their checksum is right or a word announces them;
- passwords in addresses, URL-encoded ones too (also twice) and with the slashes escaped, in headers, cookies and lists of cookies, on
  command lines, and in the answers of `expect` scripts;
- values that commands store: `kubectl create secret --from-literal`, `vault kv put`, `fly secrets set`,
  `heroku config:set`, `echo ... | gcloud secrets create` and others;
- values of names that sound secret (`DB_PASSWORD`, `apiKey`, `--token`), dotenv files, and the values in
  manifests of Kubernetes of the kind `Secret`; also values in a field of their own before or after
  the name, defaults of Terraform variables, parts of forms, files of cookies, and tables of
  `vault kv get`;
- the bodies of Ansible vaults; hashes of passwords as in `/etc/shadow`, of bcrypt, Argon2 and Django;
- columns of tables under such a name (Markdown, CSV, tabs, `psql`, boxes), if the value looks like a secret;
- what a command prints that prints nothing but a secret (`vault kv get -field`, `pass show`, `op read`,
  `cat /run/secrets/...`, `jq -r .password`, `kubectl get secret ... | base64 -d`, `printenv DB_PASSWORD`), in the
  result of its call and below a prompt, and the environment in `env | grep PASS`;
- all of these if they are encoded: `\\u0070`, `\\x70`, `&#112;`, `&quot;`, `%3D` (also twice), letters of full width,
  strings joined by `+`, hexdumps, and base64 or hexadecimal digits that a command or a call next to them
  decodes (`base64 -d`, `atob`, `fromhex`);
- tokens that a line break cuts, also in a diff, in a box, with numbered lines, in comments, and behind
  the names that `grep` prints or the times of a log, and tokens that are joined to a word (`exec_commandghp_...`).

What is not recognised:

- a password that is an ordinary word in a sentence or in a column of a table;
- the middle of a private key, if neither its first lines nor its last one is there: it looks like any
  other data in base64;
- seed phrases in another language than English, or whose columns are to be read downwards without a
  word that announces them; addresses that are URL-encoded three times.

The lists of rules of gitleaks and trufflehog name the services below. `shape` means that the token
is known wherever it stands. Tokens of Discord's bots, old tokens of Vault (`s.`) and tokens of apps of
Facebook (a number, `|` and a secret) look like other text and need a word next to them; `name` means
that it is known as the value of a variable such as `SERVICE_API_KEY`, and that the same value alone is not masked. The rows of both tables are tested: a
service with a shape has a planted secret of each of its kinds, one with a name has a sample.
The names of services were matched by their spelling, so a row says that a list has a rule for the
service, not that the rules are equal.

";

struct Row {
    service: &'static str,
    gitleaks: &'static str,
    trufflehog: &'static str,
    here: &'static str,
}

fn rows() -> Vec<Row> {
    let lines = SERVICES.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| match line.split(" | ").collect::<Vec<_>>().as_slice() {
            [service, gitleaks, trufflehog, here] => Row { service, gitleaks, trufflehog, here },
            _ => panic!("a row has four columns: {line}"),
        })
        .collect()
}

#[test]
fn each_service_is_masked_as_its_row_says() {
    let redactor = Redactor::new(&[]).expect("the built-in rules");
    let planted: BTreeSet<_> = SECRETS
        .split('⟦')
        .skip(1)
        .filter_map(|secret| secret.split_once(':').map(|(kind, _)| kind))
        .collect();
    let mut failures = Vec::new();
    for row in rows() {
        if let Some(kinds) = row.here.strip_prefix("shape ") {
            for kind in kinds.split(' ').filter(|kind| !planted.contains(kind)) {
                failures.push(format!("{}: no planted {kind}", row.service));
            }
        } else if row.here == "name" {
            let text = format!("{}_API_KEY={SAMPLE}", row.service.to_ascii_uppercase());
            if redactor.mask(&text, &mut SecretCounts::default()).contains(SAMPLE) {
                failures.push(text);
            }
        } else {
            assert_eq!(row.here, "no", "{}", row.service);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_page_about_redaction_lists_services_and_rules() {
    let rows = rows();
    let mut page = String::from(HEAD);
    page.push_str(
        "| listed by | services | shape here | name here | not here |\n|---|---|---|---|---|\n",
    );
    for list in ["gitleaks", "trufflehog"] {
        let is_listed =
            |row: &&Row| if list == "gitleaks" { row.gitleaks } else { row.trufflehog } == "yes";
        let listed: Vec<_> = rows.iter().filter(is_listed).collect();
        let count = |here: &str| listed.iter().filter(|row| row.here.starts_with(here)).count();
        let (all, shape, name) = (listed.len(), count("shape"), count("name"));
        let _ = writeln!(page, "| {list} | {all} | {shape} | {name} | {} |", all - shape - name);
    }
    page.push_str(LOGS);
    page.push_str(
        "\n## Services\n\n| service | gitleaks | trufflehog | here |\n|---|---|---|---|\n",
    );
    for row in &rows {
        let here = match row.here.strip_prefix("shape ") {
            Some(kinds) => format!("shape: `{}`", kinds.replace(' ', "`, `")),
            None => row.here.to_owned(),
        };
        let _ =
            writeln!(page, "| {} | {} | {} | {here} |", row.service, row.gitleaks, row.trufflehog);
    }
    page.push_str(RULES);
    for rule in built_in_rules() {
        let kinds = match rule.kinds.as_slice() {
            [kind, ..] if rule.kinds.len() > 3 => format!("`{kind}`, or as the name tells"),
            kinds => format!("`{}`", kinds.join("`, `")),
        };
        let what = rule.what.replace('\n', "⏎").replace('\t', "⇥").replace('|', "\\|");
        let (sample, lookalike) = (code(&rule.sample), code(&rule.lookalike));
        let _ = writeln!(page, "| {kinds} | {what} | {sample} | {lookalike} |");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/redaction.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).expect("writes");
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/redaction.md is out of date: `UPDATE_DOCS=1 cargo test -p sessions-mcp-ingest` writes it"
    );
}
