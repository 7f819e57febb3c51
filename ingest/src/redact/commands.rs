//! Masks passwords on command lines that no name announces: `curl -u user:password`,
//! `sshpass -p ...`.

use super::entropy::{is_password_sign, is_path, is_placeholder};
use super::pattern::PrefixPattern;
use super::scan::{Rank, SecretScan};

/// Number of bytes of a command that are examined.
const MAX_COMMAND_BYTES: usize = 1000;

/// A command that may contain a password: the anchor it begins with, and a regex over the command
/// whose group is the password.
pub(super) struct CommandRule {
    pub(super) anchor: &'static str,
    pub(super) kind: &'static str,
    pub(super) source: &'static str,
    /// Whether the place of the password may also contain a word of a sentence, a setting or a
    /// placeholder. The value then has to look different from these.
    is_strict: bool,
    pattern: PrefixPattern,
}

/// Creates a rule for a place that contains nothing but passwords.
const fn command(anchor: &'static str, kind: &'static str, source: &'static str) -> CommandRule {
    CommandRule { anchor, kind, source, is_strict: false, pattern: PrefixPattern::new(source) }
}

/// Creates a rule for a place that may contain something else than a password.
const fn strict(anchor: &'static str, source: &'static str) -> CommandRule {
    checked(anchor, "password", source)
}

/// Creates a rule for a place that may contain something else than a secret of the kind.
const fn checked(anchor: &'static str, kind: &'static str, source: &'static str) -> CommandRule {
    CommandRule { anchor, kind, source, is_strict: true, pattern: PrefixPattern::new(source) }
}

/// Builds the regex of a command with a flag before its password.
macro_rules! flagged {
    ($command:literal, $flag:literal) => {
        concat!("(?s)", $command, r"\s(?:[^|;&]*?\s)?", $flag, r#"\\{0,3}["']?([^\s"'\\]+)"#)
    };
}

/// Builds the regex of a command that reads its password from a here-string.
macro_rules! here_string {
    ($command:literal) => {
        concat!($command, r#"\s[^|;&\n]*?<<<\s*\\{0,3}["']?([^\s"'\\]+)"#)
    };
}

/// Builds the regex of a command of Impacket, whose target is `domain/user:password@host`.
macro_rules! target {
    ($command:literal) => {
        concat!(
            $command,
            r#"\S*\s(?:[^|;&]*?\s)?\\{0,3}["']?(?:[^\s/:@"'\\]+/)?[^\s/:@"'\\]+:([^\s"'\\]+)@"#
        )
    };
}

/// Builds the regex of a command that pipes a password into a command that reads one.
macro_rules! piped {
    ($says:literal) => {
        concat!(
            $says,
            r#"\\{0,3}["']?([^\s"'|\\]+)(?:\\{1,4}n)?\\{0,3}["']?\s*\|\s*(?:sudo\s+(?:-\S+\s+(?:[^-\s|]\S*\s+)?)*?-[A-Za-z]*S\b|(?:tr -d \S+\s*\|\s*)?(?:sudo |npx |pnpm |bunx |yarn )?(?:(?:docker|podman|buildah|skopeo|helm registry|oras|crane auth|gh auth|glab auth) login|gh secret set|chpasswd|passwd --stdin|su\b|wrangler (?:pages )?secret put|vercel env add|gcloud secrets (?:create|versions add)|(?:docker|podman) secret create|fly(?:ctl)? secrets import|pass insert|secret-tool store|cryptsetup|kinit|kubectl create secret|bw unlock|op (?:signin|item)))"#
        )
    };
}

/// All commands that may contain a password.
#[rustfmt::skip]
pub(super) static COMMANDS: [CommandRule; 140] = [
    command("curl", "basic_auth", r#"(?s)curl\s(?:(?:[^|]|\|\S)*?\s)?(?:-[a-zA-Z]{0,4}[uU]\s*|--(?:proxy-)?user[ =])\\{0,3}["']?[^\s:"'\\$]+:([^\s"'\\]+)"#),
    command("sshpass", "password", r#"sshpass\s+-p\s*\\{0,3}["']?([^\s"'\\]+)"#),
    command("mysql", "password", r#"(?s)mysql(?:dump|admin|import)?\s(?:[^|;&]*?\s)?-p\\{0,3}["']?([^\s"'\\]+)"#),
    strict("mariadb", r#"(?s)mariadb(?:-dump|-admin|-import)?\s(?:[^|;&]*?\s)?-p\\{0,3}["']?([^\s"'\\]+)"#),
    strict("mongosh", r#"(?s)mongosh\s(?:[^|;&]*?\s)?-p\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("mongodump", r#"(?s)mongodump\s(?:[^|;&]*?\s)?-p\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("mongorestore", r#"(?s)mongorestore\s(?:[^|;&]*?\s)?-p\s*\\{0,3}["']?([^\s"'\\]+)"#),
    command("docker login", "password", r#"(?s)docker login\s(?:[^|;&]*?\s)?(?:-p\s*|--password[ =])\\{0,3}["']?([^\s"'\\]+)"#),
    strict("podman login", r#"(?s)podman login\s(?:[^|;&]*?\s)?(?:-p\s*|--password[ =])\\{0,3}["']?([^\s"'\\]+)"#),
    strict("registry login", r#"(?s)registry login\s(?:[^|;&]*?\s)?(?:-p\s*|--password[ =])\\{0,3}["']?([^\s"'\\]+)"#),
    command("redis-cli", "password", r#"(?s)redis-cli\s(?:[^|;&]*?\s)?(?:-a\s*|--pass\s+)\\{0,3}["']?([^\s"'\\]+)"#),
    strict("ldapsearch", r#"(?s)ldapsearch\s(?:[^|;&]*?\s)?-w\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("-passin", r#"-passin\s+\\{0,3}["']?pass:\\{0,3}["']?([^\s"'\\]+)"#),
    strict("-passout", r#"-passout\s+\\{0,3}["']?pass:\\{0,3}["']?([^\s"'\\]+)"#),
    strict("-storepass", r#"-storepass\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("-keypass", r#"-keypass\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("-srcstorepass", r#"-srcstorepass\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("-deststorepass", r#"-deststorepass\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("htpasswd", r#"htpasswd\s[^|;&>\n]*?-[a-zA-Z]*b[^|;&>\n]*?\s\\{0,3}["']?([^\s"'\\>|;&]+)\\{0,3}["']?\s*(?:$|[>|;&\n])"#),
    strict("sqlcmd", r#"(?s)sqlcmd\s(?:[^|;&]*?\s)?-P\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("az login", r#"(?s)az login\s(?:[^|;&]*?\s)?-p\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("twine upload", r#"(?s)twine upload\s(?:[^|;&]*?\s)?-p\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("zip -", r#"zip\s(?:[^|;&]*?\s)?-[a-z]*P\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("7z a ", r#"7z a\s(?:[^|;&]*?\s)?-p\\{0,3}["']?([^\s"'\\]+)"#),
    strict("7z x ", r#"7z x\s(?:[^|;&]*?\s)?-p\\{0,3}["']?([^\s"'\\]+)"#),
    strict("ConvertTo-SecureString", r#"ConvertTo-SecureString\s+(?:-String\s+|-AsPlainText\s+|-Force\s+)*\\{0,3}["']([^\s"'\\]+)"#),
    strict("-pass pass:", r#"-pass pass:\\{0,3}["']?([^\s"'\\]+)"#),
    strict("ssh-keygen", r#"(?s)ssh-keygen\s(?:[^|;&]*?\s)?-N\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("ldapadd", r#"(?s)ldapadd\s(?:[^|;&]*?\s)?-w\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("ldapmodify", r#"(?s)ldapmodify\s(?:[^|;&]*?\s)?-w\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("plink", r#"(?s)plink\s(?:[^|;&]*?\s)?-pw\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("--secret-string", r#"--secret-string[ =]\\{0,3}["']?([^\s"'\\]+)"#),
    strict("keyvault secret set", r#"(?s)keyvault secret set\s(?:[^|;&]*?\s)?--value[ =]\\{0,3}["']?([^\s"'\\]+)"#),
    strict("IDENTIFIED", r#"IDENTIFIED\s+(?:WITH\s+\S+\s+)?BY\s+(?:PASSWORD\s+)?\\{0,3}["']([^\s"'\\]+)"#),
    strict("smbclient", r#"(?s)smbclient\s(?:[^|;&]*?\s)?-U\s*\\{0,3}["']?[^\s"'\\%]+%([^\s"'\\]+)"#),
    command("machine ", "password", r"machine\s+\S*\.\S+\s+login\s+\S+\s+password\s+(\S+)"),
    command(":5432:", "password", r":5432:[^:\s]+:[^:\s]+:([^:\s]+)"),
    command(".login(", "discord_token", r#"\.login\(\s*\\{0,3}["']([MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45})"#),
    // The id of an organisation and a `!` come before the token.
    command("!AQ?", "salesforce_token", r"!(AQ[A-Za-z0-9_.]{60,120})"),
    strict("gh secret set", r#"(?s)gh secret set\s(?:[^|;&]*?\s)?(?:--body|-b)[ =]\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("put-parameter", r#"(?s)put-parameter\s(?:[^|;&]*?\s)?--value[ =]\s*\\{0,3}["']?([^\s"'\\]+)[^|;&]*?SecureString"#),
    strict("put-parameter", r#"(?s)put-parameter\s(?:[^|;&]*?\s)?SecureString\s[^|;&]*?--value[ =]\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("put-parameter", r#"(?s)put-parameter\s(?:[^|;&]*?\s)?--name[ =]\s*\S*(?i:passw|secret|token|key)\S*\s(?:[^|;&]*?\s)?--value[ =]\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("openssl", r#"(?s)openssl\s(?:enc|aes|des|camellia|chacha)\S*\s(?:[^|;&]*?\s)?-k\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("openssl", r#"(?s)openssl\s(?:enc|aes|des|camellia|chacha)\S*\s(?:[^|;&]*?\s)?-K\s+\\{0,3}["']?([0-9A-Fa-f]{16,64})\b"#),
    strict("openssl", r#"(?s)openssl\s(?:dgst|mac)\s(?:[^|;&]*?\s)?(?:-hmac\s+|-macopt\s+(?:hex)?key:)\\{0,3}["']?([^\s"'\\]+)"#),
    strict("mongo ", r#"(?s)mongo\s(?:[^|;&]*?\s)?-p\s*\\{0,3}["']?([^\s"'\\]+)"#),
    command("wpa_passphrase", "password", r#"wpa_passphrase\s+(?:\\{0,3}"[^"\\\n]{1,64}\\{0,3}"|\\{0,3}'[^'\\\n]{1,64}\\{0,3}'|[^\s"'<\[]\S*)[ \t]+\\{0,3}["']?([^\s"'\\|<>]{8,63})"#),
    strict("sudo -", r#"sudo\s+(?:-\S+\s+)*?-[A-Za-z]*S\b[^|;&\n]*?<<<\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("gcloud secrets", r#"(?s)gcloud secrets\s(?:create|versions add)\s[^|;&]*?<<<\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("docker login", r#"(?s)docker login\s[^|;&]*?<<<\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("gh secret set", r#"(?s)gh secret set\s[^|;&]*?<<<\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("wrangler secret", r#"(?s)wrangler secret put\s[^|;&]*?<<<\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("add-generic-password", r#"(?s)add-generic-password\s(?:[^|;&]*?\s)?-w\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("net user ", r#"net user\s+[^\s/"']+\s+\\{0,3}["']?([^\s"'\\/*]+)"#),
    strict("sqlplus", r#"sqlplus\s+(?:-\S+\s+)*\\{0,3}["']?[^\s/"'@\\]+/([^\s"'@/\\]+)@"#),
    strict("sqlplus", r#"sqlplus\s+(?:-\S+\s+)*\\{0,3}["']?[a-z][a-z0-9_]*/([^\s"'@/\\.]+)\\{0,3}["']?(?:\s|$)"#),
    strict("rabbitmqctl", r#"rabbitmqctl\s(?:[^|;&]*?\s)?(?:add_user|change_password)\s+\S+\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("mosquitto_", r#"(?s)mosquitto_(?:pub|sub|rr)\s(?:[^|;&]*?\s)?-P\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("nmcli", r#"nmcli\s(?:[^|;&]*?\s)?password\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("ipmitool", r#"ipmitool\s(?:[^|;&]*?\s)?-P\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("xfreerdp", r#"xfreerdp\s(?:[^|;&]*?\s)?/p:\\{0,3}["']?([^\s"'\\]+)"#),
    strict("add-authtoken", r#"add-authtoken\s+\\{0,3}["']?([^\s"'\\]{20,})"#),
    strict("lftp", r#"lftp\s(?:[^|;&]*?\s)?-u\s*\\{0,3}["']?[^\s,"'\\]+,([^\s"'\\]+)"#),
    strict("rclone obscure", r#"rclone obscure\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("http ", r#"http\s(?:[^|;&\n]*?\s)?(?:-a\s*|--auth[ =])\\{0,3}["']?[^\s:"'\\$]+:([^\s"'\\]+)"#),
    strict("-auth ", r#"-auth\s+\\{0,3}["']?[^\s:"'\\$]+:([^\s"'\\]+)"#),
    strict("-password ", r#"-password\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("env:set", r#"env:set\s+(?i:\w*(?:token|secret|passw|key|pwd)\w*)\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("env set", r#"env set\s+(?i:\w*(?:token|secret|passw|key|pwd)\w*)\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("variable set", r#"variable set\s+(?:-\S+\s+)*\w+\s+\\{0,3}["']?([^\s"'\\-][^\s"'\\]+)"#),
    strict("config set", r#"config set\s+--secret\s+\S+\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("config http-basic", r#"config http-basic\S*\s+\S+\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("secret:create", r#"(?s)secret:create\s(?:[^|;&]*?\s)?--value[ =]\\{0,3}["']?([^\s"'\\]+)"#),
    strict("unzip -", r#"unzip\s(?:[^|;&]*?\s)?-[a-zA-Z]*P\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("unrar", r#"unrar\s+[a-z]{1,2}\s(?:[^|;&]*?\s)?-h?p\\{0,3}["']?([^\s"'\\]+)"#),
    strict("net use ", r#"net use\s+(?:[A-Za-z*]:?\s+)?\\+\S+\s+\\{0,3}["']?([^\s"'\\/*]+)"#),
    strict("cqlsh", r#"cqlsh\s(?:[^|;&]*?\s)?-p\s*\\{0,3}["']?([^\s"'\\]+)"#),
    strict("rclone config", r#"rclone config\s(?:[^|;&]*?\s)?pass[ =]\\{0,3}["']?([^\s"'\\]+)"#),
    strict("bw login", r#"bw login\s+\S+@\S+\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict(":thin:", r#":thin:[^\s/"'@\\]+/([^\s"'@/\\]+)@"#),
    strict("PASSWORD(", r#"PASSWORD\(\s*\\{0,3}["']([^\s"'\\]+)"#),
    strict("auth=(", r#"auth=\(\s*\\{0,3}["'][^"'\\\n]+\\{0,3}["'],\s*\\{0,3}["']([^\s"'\\]+)"#),
    strict("BasicAuth(", r#"BasicAuth\(\s*\\{0,3}["'][^"'\\\n]+\\{0,3}["'],\s*\\{0,3}["']([^\s"'\\]+)"#),
    strict(".login(", r#"\.login\(\s*\\{0,3}["'][^"'\\\n]+\\{0,3}["'],\s*\\{0,3}["']([^\s"'\\]+)"#),
    // Logins of package registries, clusters and clouds.
    strict("cargo login", r#"cargo login\s(?:[^|;&\n]*?\s)?\\{0,3}["']?([A-Za-z0-9][A-Za-z0-9_-]{23,})"#),
    command("vault ", "vault_token", r#"vault\s+(?:login|unwrap|token\s+\w+)\s+(?:-\S+\s+)*\\{0,3}["']?(s\.[A-Za-z0-9]{24})\b"#),
    checked("vault login", "vault_token", r#"vault login\s+(?:-\S+\s+)*\\{0,3}["']?([A-Za-z0-9._-]{20,})"#),
    checked("wandb login", "wandb_key", r#"wandb login\s+(?:-\S+\s+(?:https?://\S+\s+)?)*\\{0,3}["']?([A-Za-z0-9]{32,})"#),
    strict("auth login", here_string!("auth login")),
    strict("git credential", r#"git credential(?:-\S+)?\s[^|;&\n]*?<<<[^|;&]*?password=([^\s"'\\]+)"#),
    strict("acr login", flagged!("acr login", "-p\\s*")),
    strict("oc login", flagged!("oc login", "-p\\s*")),
    strict("snowsql", flagged!("snowsql", "-p\\s*")),
    strict("poetry publish", flagged!("poetry publish", "-p\\s*")),
    strict("nuget push", flagged!("nuget push", "(?:-k\\s+|--api-key[ =])")),
    strict("nuget add source", flagged!("nuget add source", "-p\\s+")),
    strict("user-secrets set", r#"user-secrets set\s+(?:-\S+\s+\S+\s+)*\\{0,3}["']?[^\s"'\\]*(?i:passw|secret|token|key|pwd)[^\s"'\\]*\\{0,3}["']?\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("mc alias set", r#"mc alias set\s+\S+\s+\S+\s+\S+\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("influx setup", flagged!("influx setup", "-p\\s+")),
    strict("altool", flagged!("altool", "-p\\s+")),
    // Keychains, archives and encrypted files.
    strict("unlock-keychain", flagged!("unlock-keychain", "-p\\s*")),
    strict("security import", flagged!("security import", "-P\\s*")),
    strict("bw unlock", r#"bw unlock\s+(?:--raw\s+)?\\{0,3}["']?([^\s"'\\-][^\s"'\\]*)"#),
    strict("encrypt_string", r#"encrypt_string\s+(?:--[a-z-]+[ =]\S+\s+)*\\{0,3}["']?([^\s"'\\-][^\s"'\\]*)"#),
    strict("cryptsetup", here_string!("cryptsetup")),
    strict("kinit", here_string!("kinit")),
    strict("pass insert", here_string!("pass insert")),
    strict("lpass login", here_string!("lpass login")),
    strict("rar a ", r#"rar a\s(?:[^|;&]*?\s)?-h?p\\{0,3}["']?([^\s"'\\]+)"#),
    strict("7za ", r#"7za [a-z]\s(?:[^|;&]*?\s)?-p\\{0,3}["']?([^\s"'\\]+)"#),
    // Windows, directories, databases and networks.
    strict("cmdkey", flagged!("cmdkey", "/pass:")),
    strict("schtasks", flagged!("schtasks", "/[rR][pP]\\s+")),
    strict("psexec.py", target!("psexec")),
    strict("wmiexec.py", target!("wmiexec")),
    strict("smbexec.py", target!("smbexec")),
    strict("secretsdump.py", target!("secretsdump")),
    strict("impacket-", target!("impacket-")),
    strict("rpcclient", r#"(?s)rpcclient\s(?:[^|;&]*?\s)?-U\s*\\{0,3}["']?[^\s"'\\%]+%([^\s"'\\]+)"#),
    strict("net rpc ", r#"(?s)net rpc\s(?:[^|;&]*?\s)?-U\s*\\{0,3}["']?[^\s"'\\%]+%([^\s"'\\]+)"#),
    strict("evil-winrm", flagged!("evil-winrm", "-p\\s*")),
    strict("crackmapexec", flagged!("crackmapexec", "-p\\s*")),
    strict("snmp", flagged!("snmp[a-z]+", "-A\\s*")),
    strict("snmp", flagged!("snmp[a-z]+", "-X\\s*")),
    strict("--oauth2-bearer", r#"--oauth2-bearer[ =]\\{0,3}["']?([^\s"'\\]+)"#),
    strict("requirepass", r#"requirepass\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("masterauth", r#"masterauth\s+\\{0,3}["']?([^\s"'\\]+)"#),
    strict("bindpw", r#"bindpw\s+\\{0,3}["']?([^\s"'\\]+)"#),
    // In base64: an empty name, a user and a password, with a zero byte before each.
    checked("AUTH PLAIN", "basic_auth", r"AUTH PLAIN\s+(A[D-H][A-Za-z0-9+/]{8,}={0,2})"),
    // Lists of keys that AWS exports.
    command("AKIA", "aws_secret_key", r"AKIA[A-Z2-7]{16}[,;\t|:] ?([A-Za-z0-9+/]{40})(?:\s|,|$)"),
    command("access_token$", "braintree_token", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$([0-9a-f]{32})"),
    strict("cypher-shell", flagged!("cypher-shell", "-p\\s*")),
    command("notarytool", "password", r#"(?s)notarytool\s(?:[^|;&]*?\s)?--password[ =]\\{0,3}["']?([a-z]{4}(?:-[a-z]{4}){3})"#),
    command("altool", "password", r#"(?s)altool\s(?:[^|;&]*?\s)?(?:--password[ =]|-p\s+)\\{0,3}["']?([a-z]{4}(?:-[a-z]{4}){3})"#),
    command("WIFI:", "password", r"WIFI:(?:[A-OQ-Z]:(?:\\.|[^;\\\n])*;)*?P:((?:\\.|[^;\\\n]){8,63});"),
    command("::add-mask::", "secret", r#"::add-mask::([^\s"'\\$%{][^\s"'\\]*)"#),
    // The name of a deployment comes before it: `prod:quick-otter-123|...`.
    command("|eyJ", "convex_key", r"\|(eyJ[A-Za-z0-9+/=_-]{40,})"),
    command("pbkdf2_sha", "password_hash", r"pbkdf2_sha(?:1|256|512)\$[0-9]+\$[A-Za-z0-9+/=]{8,}\$([A-Za-z0-9+/]{20,}={0,2})"),
    strict("echo", piped!(r"echo\s+(?:-[neE]+\s+)?")),
    strict("printf", piped!(r#"printf\s+(?:\\{0,3}["']?%s(?:\\{1,4}n)?\\{0,3}["']?\s+)?"#)),
];

/// Masks the password in the command that begins at `at`.
pub(super) fn mask_command_password(scan: &mut SecretScan<'_>, at: usize, command: &CommandRule) {
    if !command.anchor.starts_with([':', '.', '!', '|']) && !scan.may_begin_token(at) {
        return;
    }
    let line = command_line(scan.text_from(at, MAX_COMMAND_BYTES));
    let Some(found) = command.pattern.at_start(line) else { return };
    let Some(password) = found.get(1) else { return };

    let value = password.as_str();
    // `user:password`
    let word = value.rsplit_once(':').map_or(value, |(_, word)| word);
    if value.len() >= 4
        && !is_placeholder(value)
        && !is_placeholder(word)
        && !is_path(value)
        && !is_ports(value)
        && (!command.is_strict || may_be_password(word))
    {
        scan.add_secret(at + password.start(), at + password.end(), command.kind, Rank::Around);
    }
}

/// Returns whether a value names ports: `-p 127.0.0.1:27017:27017/tcp` publishes those of a
/// container, and `-p 6379` is the port of a server.
fn is_ports(value: &str) -> bool {
    let plain = value.trim_end_matches("/tcp").trim_end_matches("/udp");
    let mut parts = plain.rsplit(':');
    if !parts.next().is_some_and(is_port) {
        return false;
    }
    let Some(before) = parts.next() else { return true };
    is_port(before) || before.contains('.') || parts.next().is_some()
}

fn is_port(part: &str) -> bool {
    (2..=5).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a value is neither a word of a text nor a flag nor a setting. It contains a
/// digit or a sign, and is not the name of a region with its number.
fn may_be_password(value: &str) -> bool {
    // Words of sentences, and options without the letter that was taken for the flag.
    let is_word =
        ["option", "flag", "rotocol", "rint-defaults"].iter().any(|word| value.starts_with(word));
    if is_word || value.starts_with('-') {
        return false;
    }

    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_name = value.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
    });
    let is_region = is_name && value.contains(['-', '_', '.']) && digits <= 2;
    !is_region && (digits > 0 || value.bytes().any(is_password_sign))
}

/// Returns the text up to the end of the line, and beyond it if a backslash continues the line. The
/// text ends before `&&` and `||`, because another command begins there.
pub(super) fn command_line(text: &str) -> &str {
    let mut line = text;
    for at in memchr::memchr_iter(b'\n', text.as_bytes()) {
        let before = text.get(..at).unwrap_or_default();
        if !before.ends_with('\\') {
            line = before;
            break;
        }
    }
    let end = [" && ", " || "].iter().filter_map(|joint| line.find(joint)).min();
    line.get(..end.unwrap_or(line.len())).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_a_regex_with_a_group() {
        for command in &COMMANDS {
            let regex = regex::Regex::new(command.source).expect(command.anchor);
            assert_eq!(regex.captures_len(), 2, "{}", command.anchor);
        }
    }

    #[test]
    fn a_command_ends_with_its_line() {
        assert_eq!(command_line("curl \\\n -u a:b\nnext"), "curl \\\n -u a:b");
        assert_eq!(command_line("curl"), "curl");
        assert_eq!(command_line("curl 'x&y' && docker run --user a:b"), "curl 'x&y'");
    }
}
