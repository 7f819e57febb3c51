//! The rules for commands: passwords on their lines, the values they store, the secrets they print and
//! the arguments they decode. `command.rs`, `printed.rs` and `encoded.rs` match them.

use super::names::SECRET_KINDS;
use super::pattern::LazyRegex;
use super::rule::Encoding::{self, Base64, Hex};
use super::rule::Stored::{self, Secrets, Settings};
use super::rule::{PasswordPlace, PrintedValue, Recognizer, SecretRule, rule};
use super::scan::ANY_KIND;
use super::scan::Rank::Around;

/// Creates a rule for the place of a secret of the kind. It is strict if the place may contain something
/// else.
const fn command(
    kind: &'static str,
    is_strict: bool,
    anchors: &'static [&'static str],
    regex: &'static str,
    sample: &'static str,
    lookalike: &'static str,
) -> SecretRule {
    let place = PasswordPlace { pattern: LazyRegex::at_start(regex), is_strict };
    rule(Around, kind, &[], anchors, Recognizer::Command(place), sample, lookalike)
}

/// Creates a rule for a place that may contain something else than a password.
const fn strict(
    anchors: &'static [&'static str],
    regex: &'static str,
    sample: &'static str,
    lookalike: &'static str,
) -> SecretRule {
    command("password", true, anchors, regex, sample, lookalike)
}

/// Creates a rule for a command that stores pairs of names and values.
const fn stores(
    stored: Stored,
    anchors: &'static [&'static str],
    sample: &'static str,
    lookalike: &'static str,
) -> SecretRule {
    rule(Around, "secret", SECRET_KINDS, anchors, Recognizer::Pairs(stored), sample, lookalike)
}

/// Creates a rule for a command or a call that decodes its argument.
const fn argument(
    encoding: Encoding,
    anchors: &'static [&'static str],
    regex: &'static str,
    sample: &'static str,
    lookalike: &'static str,
) -> SecretRule {
    let recognizer = Recognizer::Argument(encoding, LazyRegex::at_start(regex));
    rule(Around, ANY_KIND, &[], anchors, recognizer, sample, lookalike)
}

/// Creates a rule for a command that prints secrets, unless the name says something else.
const fn prints_secret(
    anchors: &'static [&'static str],
    regex: &'static str,
    sample: &'static str,
    lookalike: &'static str,
) -> SecretRule {
    let value = PrintedValue { pattern: last_command(regex), needs_secret_name: false };
    rule(Around, "secret", SECRET_KINDS, anchors, Recognizer::Printed(value), sample, lookalike)
}

/// Creates a rule for a command that prints values of any name.
const fn prints_value(
    anchors: &'static [&'static str],
    regex: &'static str,
    sample: &'static str,
    lookalike: &'static str,
) -> SecretRule {
    let value = PrintedValue { pattern: last_command(regex), needs_secret_name: true };
    rule(Around, "secret", SECRET_KINDS, anchors, Recognizer::Printed(value), sample, lookalike)
}

/// Creates the pattern of the last command of a line. Filters may follow it, but no command that
/// prints something else.
const fn last_command(regex: &'static str) -> LazyRegex {
    const AFTER: &str = concat!(
        r")[^|;&<>]*(?:2>\S+\s*)?",
        r"(?:\|\s*(?:tr|base64|head|tail|cut|sed|awk|xargs|openssl|jq|rev)\b[^|;&<>]*)*",
        r"(?:;\s*echo\s*)?$"
    );
    LazyRegex::within(r"(?:^|[;&|]\s*|\s)(?:", regex, AFTER)
}

/// Builds the regex of a command with a flag before its password.
macro_rules! flagged {
    ($command:literal, $flag:literal) => {
        concat!("(?s)", $command, r"\s(?:[^|;&]*?\s)?", $flag, r#"\\{0,3}["']?([^\s"'\\]+)"#)
    };
}

/// Builds the regex of a command that pipes its argument into another one.
macro_rules! piped_into {
    ($decoder:literal) => {
        concat!(
            r#"(?:echo|printf)(?:\s+-\S+)*\s+(?:\\{0,3}["']?%s(?:\\{1,4}n)?\\{0,3}["']?\s+)?\\{0,3}["']?([A-Za-z0-9+/=_-]{8,})\\{0,3}["']?\s*\|\s*"#,
            $decoder
        )
    };
}

/// Builds the regex of a call whose first argument is a string.
macro_rules! called {
    ($call:literal, $rest:literal) => {
        concat!($call, r#"\(\s*b?\\{0,3}["']([A-Za-z0-9+/=_-]{8,})\\{0,3}["']"#, $rest)
    };
}

/// All commands that may contain a password.
#[rustfmt::skip]
pub(super) static COMMAND_RULES: [SecretRule; 89] = [
    command("basic_auth", false, &["curl"], r#"(?s)curl\s(?:(?:[^|]|\|\S)*?\s)?(?:-[a-zA-Z]{0,4}[uU]\s*|--(?:proxy-)?user[ =])\\{0,3}["']?[^\s:"'\\$]+:([^\s"'\\]+)"#,
        "curl -u mira:⟦fj0‹›rd-n0rth⟧", "curl -u user:password https://example.org"),
    command("password", false, &["sshpass"], r#"sshpass\s+-p\s*\\{0,3}["']?([^\s"'\\]+)"#,
        "sshpass -p '⟦fj0rdn0rth⟧'", r#"sshpass -p "$PASS" ssh mira@host"#),
    command("password", false, &["mysql"], r#"(?s)mysql(?:dump|admin|import)?\s(?:[^|;&]*?\s)?-p\\{0,3}["']?([^\s"'\\]+)"#,
        "mysql -u mira -p⟦Fj0rd7north⟧", r#"mysqldump -u root -p"$MYSQL_PWD" harbor"#),
    strict(&["mariadb", "7z a ", "7z x "], flagged!("(?:mariadb(?:-dump|-admin|-import)?|7z a|7z x)", "-p"),
        "mariadb -h 10.0.0.7 -umira -p⟦fj0rdn0rth77⟧", "mariadb -h 10.0.0.7 -umira -p$SECRET"),
    strict(&[
        "mongosh", "mongodump", "mongorestore", "az login", "twine upload", "mongo ", "cqlsh",
        "acr login", "oc login", "snowsql", "poetry publish", "unlock-keychain", "evil-winrm",
        "crackmapexec", "cypher-shell"],
        flagged!("(?:mongosh|mongodump|mongorestore|az login|twine upload|mongo|cqlsh|acr login|oc login|snowsql|poetry publish|unlock-keychain|evil-winrm|crackmapexec|cypher-shell)", r"-p\s*"),
        r#"mongosh "mongodb://db.example" -u mira -p ⟦Fj0rd8north⟧"#, "redis-cli -h mongo -n 1 -p 6379"),
    command("password", false, &["docker login"], r#"(?s)docker login\s(?:[^|;&]*?\s)?(?:-p\s*|--password[ =])\\{0,3}["']?([^\s"'\\]+)"#,
        "docker login -u mira -p ⟦Quay#91side⟧", "docker login -u mira -p $SECRET"),
    strict(&["podman login", "registry login"], flagged!("(?:podman login|registry login)", r"(?:-p\s*|--password[ =])"),
        "podman login -u mira -p ⟦fj0rdn0rth77⟧", "use podman login with the -p flag"),
    command("password", false, &["redis-cli"], r#"(?s)redis-cli\s(?:[^|;&]*?\s)?(?:-a\s*|--pass\s+)\\{0,3}["']?([^\s"'\\]+)"#,
        "redis-cli -h db.example -a ⟦Fj0rd6north⟧", "redis-cli -h db.example -a $SECRET"),
    strict(&["ldapsearch", "ldapadd", "ldapmodify", "add-generic-password"],
        flagged!("(?:ldapsearch|ldapadd|ldapmodify|add-generic-password)", r"-w\s*"),
        "ldapsearch -D cn=admin -w ⟦Quay#91side⟧", "ldapsearch with the -w option instead"),
    strict(&["-passin", "-passout"], r#"(?:-passin|-passout)\s+\\{0,3}["']?pass:\\{0,3}["']?([^\s"'\\]+)"#,
        "-passin pass:⟦fj0rdn0rth77⟧", "-passin pass:$SECRET"),
    strict(&[
        "-storepass", "-keypass", "-srcstorepass", "-deststorepass", "rclone obscure",
        "-password ", "requirepass", "masterauth", "bindpw"],
        r#"(?:-storepass|-keypass|-srcstorepass|-deststorepass|rclone obscure|-password|requirepass|masterauth|bindpw)\s+\\{0,3}["']?([^\s"'\\]+)"#,
        "-storepass ⟦fj0rdn0rth77⟧", "keytool -list -storepass STORE_PASSWORD"),
    strict(&["htpasswd"], r#"htpasswd\s[^|;&>\n]*?-[a-zA-Z]*b[^|;&>\n]*?\s\\{0,3}["']?([^\s"'\\>|;&]+)\\{0,3}["']?\s*(?:$|[>|;&\n])"#,
        "htpasswd -Bbn mira ⟦Quay#91side⟧", "htpasswd -Bbn mira $SECRET"),
    strict(&["sqlcmd", "ipmitool", "security import"],
        flagged!("(?:sqlcmd|ipmitool|security import)", r"-P\s*"),
        "sqlcmd -S db -U sa -P '⟦Quokka91!x⟧'", "sqlcmd -S db -U sa -P '$SECRET'"),
    strict(&["zip -"], r#"zip\s(?:[^|;&]*?\s)?-[a-z]*P\s*\\{0,3}["']?([^\s"'\\]+)"#,
        "zip -P ⟦Quokka91⟧", "zip -P $SECRET"),
    strict(&["ConvertTo-SecureString"], r#"ConvertTo-SecureString\s+(?:-String\s+|-AsPlainText\s+|-Force\s+)*\\{0,3}["']([^\s"'\\]+)"#,
        r#"ConvertTo-SecureString "⟦Quokka91!⟧""#, r#"ConvertTo-SecureString "$password" -AsPlainText -Force"#),
    strict(&["-pass pass:"], r#"-pass pass:\\{0,3}["']?([^\s"'\\]+)"#,
        "-pass pass:⟦Quokka91⟧", "-pass pass:$SECRET"),
    strict(&["ssh-keygen"], r#"(?s)ssh-keygen\s(?:[^|;&]*?\s)?-N\s*\\{0,3}["']?([^\s"'\\]+)"#,
        r#"ssh-keygen -t ed25519 -f id -N "⟦Quokka91!⟧""#, r#"ssh-keygen -t ed25519 -f id -N "$SECRET""#),
    strict(&["plink"], r#"(?s)plink\s(?:[^|;&]*?\s)?-pw\s+\\{0,3}["']?([^\s"'\\]+)"#,
        "plink -ssh root@10.0.0.1 -pw ⟦Quokka91⟧", "plink -ssh root@10.0.0.1 -pw $SECRET"),
    strict(&["--secret-string", "--oauth2-bearer"], r#"(?:--secret-string|--oauth2-bearer)[ =]\\{0,3}["']?([^\s"'\\]+)"#,
        "--secret-string '⟦Quokka91!⟧'", "--secret-string '$SECRET'"),
    strict(&["keyvault secret set", "secret:create"], flagged!("(?:keyvault secret set|secret:create)", "--value[ =]"),
        r#"keyvault secret set --vault-name kv --name db --value "⟦Fj0rd!north9⟧""#, r#"keyvault secret set --vault-name kv --name db --value "$SECRET""#),
    strict(&["IDENTIFIED"], r#"IDENTIFIED\s+(?:WITH\s+\S+\s+)?BY\s+(?:PASSWORD\s+)?\\{0,3}["']([^\s"'\\]+)"#,
        "IDENTIFIED BY '⟦Quokka!91⟧'", "IDENTIFIED BY '$SECRET'"),
    strict(&["smbclient", "rpcclient", "net rpc "],
        r#"(?s)(?:smbclient|rpcclient|net rpc)\s(?:[^|;&]*?\s)?-U\s*\\{0,3}["']?[^\s"'\\%]+%([^\s"'\\]+)"#,
        "smbclient //nas/share -U mira%⟦Quay#91side⟧", "smbclient //nas/share -U mira%$SECRET"),
    command("password", false, &["machine "], r"machine\s+\S*\.\S+\s+login\s+\S+\s+password\s+(\S+)",
        "machine api.example.org login mira password ⟦fj0rdn0rth⟧", "machine api.example.org login mira password $SECRET"),
    command("password", false, &[":5432:"], r":5432:[^:\s]+:[^:\s]+:([^:\s]+)",
        ":5432:harbor:mira:⟦fj0rdn0rth⟧", ":5432:harbor:mira:$SECRET"),
    command("discord_token", false, &[".login("], r#"\.login\(\s*\\{0,3}["']([MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45})"#,
        r#".login("⟦MTZ‹›qumpm08hsE8JNpjJOQGa2rb.19FlY0.mG‹›1ylvuhfJXqIEnomef2mSJ5CMTIeg1ZTVnVv2⟧""#, r#"client.login("token")"#),
    // The id of an organisation and a `!` come before the token.
    command("salesforce_token", false, &["!AQ?"], r"!(AQ[A-Za-z0-9_.]{60,120})",
        "!⟦AQ4‹›Ffr1H5c95iomeivfDw1zcSEIGKxEPDIfSONhNZ2lAYYz6‹›0EwWQmsUMeHZ1QMBQetJ4vFP2wRb1THIKBtdUM6l0wneUV89m⟧", "!AQ4Ffr1H5c95"),
    strict(&["gh secret set"], r#"(?s)gh secret set\s(?:[^|;&]*?\s)?(?:--body|-b)[ =]\s*\\{0,3}["']?([^\s"'\\]+)"#,
        "gh secret set DEPLOY -b ⟦gl4c13rn0rth⟧", r#"gh secret set DEPLOY --body "$DEPLOY""#),
    strict(&["put-parameter"], r#"(?s)put-parameter\s(?:[^|;&]*?\s)?--value[ =]\s*\\{0,3}["']?([^\s"'\\]+)[^|;&]*?SecureString"#,
        "put-parameter --value ⟦Quay#91side⟧ --type SecureString", r#"put-parameter --name /a/token --value "$TOKEN" --type SecureString"#),
    strict(&["put-parameter"], r#"(?s)put-parameter\s(?:[^|;&]*?\s)?SecureString\s[^|;&]*?--value[ =]\s*\\{0,3}["']?([^\s"'\\]+)"#,
        "put-parameter --type SecureString --value ⟦Quay#91side⟧", "put-parameter --type SecureString --value $SECRET"),
    strict(&["put-parameter"], r#"(?s)put-parameter\s(?:[^|;&]*?\s)?--name[ =]\s*\S*(?i:passw|secret|token|key)\S*\s(?:[^|;&]*?\s)?--value[ =]\s*\\{0,3}["']?([^\s"'\\]+)"#,
        "put-parameter --name /harbor/db-password --value ⟦Quay#91side⟧", "put-parameter --name /harbor/db-password --value $SECRET"),
    strict(&["openssl"], r#"(?s)openssl\s(?:enc|aes|des|camellia|chacha)\S*\s(?:[^|;&]*?\s)?-k\s+\\{0,3}["']?([^\s"'\\]+)"#,
        "openssl aes-256-cbc -d -in a -k '⟦gl4c13rn0rth⟧'", r#"openssl enc -aes-256-cbc -k "$KEY" -in a -out b"#),
    strict(&["openssl"], r#"(?s)openssl\s(?:enc|aes|des|camellia|chacha)\S*\s(?:[^|;&]*?\s)?-K\s+\\{0,3}["']?([0-9A-Fa-f]{16,64})\b"#,
        "openssl enc -aes-256-cbc -K ⟦4d8‹›c4fa2815d2802827283e0ad841735‹›81569969e58b081006f7e3dfc967a64c⟧", "openssl enc -aes-256-cbc -K $SECRET"),
    strict(&["openssl"], r#"(?s)openssl\s(?:dgst|mac)\s(?:[^|;&]*?\s)?(?:-hmac\s+|-macopt\s+(?:hex)?key:)\\{0,3}["']?([^\s"'\\]+)"#,
        r#"openssl dgst -sha256 -hmac "⟦Rf7kQ2vX9⟧""#, r#"openssl dgst -sha256 -hmac "$SECRET""#),
    command("password", false, &["wpa_passphrase"], r#"wpa_passphrase\s+(?:\\{0,3}"[^"\\\n]{1,64}\\{0,3}"|\\{0,3}'[^'\\\n]{1,64}\\{0,3}'|[^\s"'<\[]\S*)[ \t]+\\{0,3}["']?([^\s"'\\|<>]{8,63})"#,
        "wpa_passphrase Harbor ⟦lightshipwharf⟧", "wpa_passphrase Harbor $SECRET"),
    strict(&["sudo -"], r#"sudo\s+(?:-\S+\s+)*?-[A-Za-z]*S\b[^|;&\n]*?<<<\s*\\{0,3}["']?([^\s"'\\]+)"#,
        r#"sudo -S systemctl restart x <<< "⟦Fj0rd3north⟧""#, r#"sudo -S systemctl restart x <<< "$SECRET""#),
    strict(&["gcloud secrets"], r#"(?s)gcloud secrets\s(?:create|versions add)\s[^|;&]*?<<<\s*\\{0,3}["']?([^\s"'\\]+)"#,
        r#"gcloud secrets create db --data-file=- <<< "⟦Fj0rdnorth7⟧""#, r#"gcloud secrets create db --data-file=- <<< "$SECRET""#),
    strict(&["docker login", "gh secret set", "wrangler secret put"],
        r#"(?s)(?:docker login|gh secret set|wrangler secret put)\s[^|;&]*?<<<\s*\\{0,3}["']?([^\s"'\\]+)"#,
        "docker login --password-stdin <<< ⟦Quay#91side⟧", "docker login --password-stdin <<< $SECRET"),
    strict(&["net user "], r#"net user\s+[^\s/"']+\s+\\{0,3}["']?([^\s"'\\/*]+)"#,
        "net user mira ⟦Fj0rd!north1⟧", "net user mira $SECRET"),
    strict(&["sqlplus"], r#"sqlplus\s+(?:-\S+\s+)*\\{0,3}["']?[^\s/"'@\\]+/([^\s"'@/\\]+)@"#,
        "sqlplus mira/⟦Fj0rd1north⟧@", "sqlplus mira/$SECRET@"),
    strict(&["sqlplus"], r#"sqlplus\s+(?:-\S+\s+)*\\{0,3}["']?[a-z][a-z0-9_]*/([^\s"'@/\\.]+)\\{0,3}["']?(?:\s|$)"#,
        "sqlplus system/⟦KxI9F9ZeQsIIq7⟧", "sqlplus mira/$PASSWORD"),
    strict(&["rabbitmqctl"], r#"rabbitmqctl\s(?:[^|;&]*?\s)?(?:add_user|change_password)\s+\S+\s+\\{0,3}["']?([^\s"'\\]+)"#,
        "rabbitmqctl add_user mira ⟦Fj0rdnorth6⟧", "rabbitmqctl add_user mira $SECRET"),
    strict(&["mosquitto_"], r#"(?s)mosquitto_(?:pub|sub|rr)\s(?:[^|;&]*?\s)?-P\s*\\{0,3}["']?([^\s"'\\]+)"#,
        "mosquitto_pub -h q.example -u mira -P ⟦Fj0rdnorth5⟧", "mosquitto_pub -h q.example -u mira -P $SECRET"),
    strict(&["nmcli"], r#"nmcli\s(?:[^|;&]*?\s)?password\s+\\{0,3}["']?([^\s"'\\]+)"#,
        "nmcli dev wifi connect Harbor password ⟦fjordnorth55⟧", "nmcli dev wifi connect Harbor password $SECRET"),
    strict(&["xfreerdp"], r#"xfreerdp\s(?:[^|;&]*?\s)?/p:\\{0,3}["']?([^\s"'\\]+)"#,
        "xfreerdp /u:mira /p:⟦Quay#91side⟧", "xfreerdp /u:mira /p:$SECRET"),
    strict(&["add-authtoken"], r#"add-authtoken\s+\\{0,3}["']?([^\s"'\\]{20,})"#,
        "add-authtoken ⟦2AE‹›Z7770h2dcPyGOJJhrG80u‹›sp2_w5dFjxCAyIOk6CptT9IoQ⟧", "add-authtoken $SECRET"),
    strict(&["lftp"], r#"lftp\s(?:[^|;&]*?\s)?-u\s*\\{0,3}["']?[^\s,"'\\]+,([^\s"'\\]+)"#,
        "lftp -u mira,⟦Fj0rdnorth4⟧", "lftp -u mira,$SECRET"),
    strict(&["http "], r#"http\s(?:[^|;&\n]*?\s)?(?:-a\s*|--auth[ =])\\{0,3}["']?[^\s:"'\\$]+:([^\s"'\\]+)"#,
        "http -a mira:⟦Quay#91side⟧ api.example.org", "http -a mira:$SECRET api.example.org"),
    strict(&["-auth "], r#"-auth\s+\\{0,3}["']?[^\s:"'\\$]+:([^\s"'\\]+)"#,
        "hey -auth mira:⟦Quay#91side⟧", "hey -auth mira:$SECRET"),
    strict(&["env:set", "env set"], r#"(?:env:set|env set)\s+(?i:\w*(?:token|secret|passw|key|pwd)\w*)\s+\\{0,3}["']?([^\s"'\\]+)"#,
        "netlify env:set API_TOKEN ⟦Quay#91side⟧", "netlify env:set API_TOKEN $SECRET"),
    strict(&["variable set"], r#"variable set\s+(?:-\S+\s+)*\w+\s+\\{0,3}["']?([^\s"'\\-][^\s"'\\]+)"#,
        "glab variable set DB_PASSWORD ⟦Quay#91side⟧", "glab variable set DB_PASSWORD $SECRET"),
    strict(&["config set"], r#"config set\s+--secret\s+\S+\s+\\{0,3}["']?([^\s"'\\]+)"#,
        "pulumi config set --secret db ⟦Quay#91side⟧", "pulumi config set --secret db $SECRET"),
    strict(&["config http-basic"], r#"config http-basic\S*\s+\S+\s+\\{0,3}["']?([^\s"'\\]+)"#,
        "composer config http-basic.example.org mira ⟦Quay#91side⟧", "composer config http-basic.example.org mira $SECRET"),
    strict(&["unzip -"], r#"unzip\s(?:[^|;&]*?\s)?-[a-zA-Z]*P\s*\\{0,3}["']?([^\s"'\\]+)"#,
        "unzip -P ⟦Quay#91side⟧ backup.zip", "unzip -P $SECRET backup.zip"),
    strict(&["unrar"], r#"unrar\s+[a-z]{1,2}\s(?:[^|;&]*?\s)?-h?p\\{0,3}["']?([^\s"'\\]+)"#,
        "unrar x -p⟦Quay#91side⟧ backup.rar", "unrar x -p$SECRET backup.rar"),
    strict(&["net use "], r#"net use\s+(?:[A-Za-z*]:?\s+)?\\+\S+\s+\\{0,3}["']?([^\s"'\\/*]+)"#,
        r"net use Z: \\nas\share ⟦Quay#91side⟧", r"net use Z: \\nas\share $SECRET"),
    strict(&["rclone config"], r#"rclone config\s(?:[^|;&]*?\s)?pass[ =]\\{0,3}["']?([^\s"'\\]+)"#,
        "rclone config create nas sftp pass=⟦Quay#91side⟧", "rclone config create nas sftp pass=$SECRET"),
    strict(&["bw login"], r#"bw login\s+\S+@\S+\s+\\{0,3}["']?([^\s"'\\]+)"#,
        "bw login mira@example.org ⟦Quay#91side⟧", "bw login mira@example.org $SECRET"),
    strict(&[":thin:"], r#":thin:[^\s/"'@\\]+/([^\s"'@/\\]+)@"#,
        "jdbc:oracle:thin:mira/⟦Quay#91side⟧@db.example", "jdbc:oracle:thin:mira/$SECRET@db.example"),
    strict(&["PASSWORD("], r#"PASSWORD\(\s*\\{0,3}["']([^\s"'\\]+)"#,
        "PASSWORD('⟦Quay#91side⟧')", "PASSWORD('$SECRET')"),
    strict(&["auth=(", "BasicAuth(", ".login("],
        r#"(?:auth=\(|BasicAuth\(|\.login\()\s*\\{0,3}["'][^"'\\\n]+\\{0,3}["'],\s*\\{0,3}["']([^\s"'\\]+)"#,
        r#"auth=("mira", "⟦Quay#91side⟧")"#, r#"auth=("mira", "$SECRET")"#),
    // Logins of package registries, clusters and clouds.
    strict(&["cargo login"], r#"cargo login\s(?:[^|;&\n]*?\s)?\\{0,3}["']?([A-Za-z0-9][A-Za-z0-9_-]{23,})"#,
        "cargo login ⟦aeD‹›2TXqbUKA8koKwu‹›pdZ5rqBtdVClz8NT8Z⟧", "cargo login $SECRET"),
    command("vault_token", false, &["vault "], r#"vault\s+(?:login|unwrap|token\s+\w+)\s+(?:-\S+\s+)*\\{0,3}["']?(s\.[A-Za-z0-9]{24})\b"#,
        "vault login ⟦s.l‹›nUUIqBtAUm‹›8SscuzM2fwc3g⟧", "vault login $SECRET"),
    command("vault_token", true, &["vault login"], r#"vault login\s+(?:-\S+\s+)*\\{0,3}["']?([A-Za-z0-9._-]{20,})"#,
        "vault login ⟦s.l‹›nUUIqBtAUm‹›8SscuzM2fwc3g⟧", "vault login $SECRET"),
    command("wandb_key", true, &["wandb login"], r#"wandb login\s+(?:-\S+\s+(?:https?://\S+\s+)?)*\\{0,3}["']?([A-Za-z0-9]{32,})"#,
        "wandb login ⟦48f‹›080dc488c093cf317‹›8ca6b81c64f8326a7f8e⟧", "wandb login $SECRET"),
    strict(&["auth login", "cryptsetup", "kinit", "pass insert", "lpass login"],
        r#"(?:auth login|cryptsetup|kinit|pass insert|lpass login)\s[^|;&\n]*?<<<\s*\\{0,3}["']?([^\s"'\\]+)"#,
        "auth login --with-token <<< ⟦1VJ‹›AttSDHxa5XOxok‹›sq7bPMTpkmGmrHZk2S⟧", r#"gh auth login --with-token <<< "$TOKEN""#),
    strict(&["git credential"], r#"git credential(?:-\S+)?\s[^|;&\n]*?<<<[^|;&]*?password=([^\s"'\\]+)"#,
        r#"git credential approve <<< "password=⟦Kx1oE9iwi3Bcq7⟧""#, r#"git credential approve <<< "password=$SECRET""#),
    strict(&["nuget push"], flagged!("nuget push", "(?:-k\\s+|--api-key[ =])"),
        "nuget push a.nupkg -k ⟦Kx3gA9pIV1Ltq7⟧", "dotnet nuget push a.nupkg -k $KEY"),
    strict(&["nuget add source", "influx setup", "altool"],
        flagged!("(?:nuget add source|influx setup|altool)", r"-p\s+"),
        "nuget add source x -u mira -p ⟦Kxg8h9ot6sLmq7⟧", "nuget add source x -u mira -p $SECRET"),
    strict(&["user-secrets set"], r#"user-secrets set\s+(?:-\S+\s+\S+\s+)*\\{0,3}["']?[^\s"'\\]*(?i:passw|secret|token|key|pwd)[^\s"'\\]*\\{0,3}["']?\s+\\{0,3}["']?([^\s"'\\]+)"#,
        r#"user-secrets set "Db:Password" "⟦KxHGn9skBFeyq7⟧""#, r#"user-secrets set "Db:Password" "$SECRET""#),
    strict(&["mc alias set"], r#"mc alias set\s+\S+\s+\S+\s+\S+\s+\\{0,3}["']?([^\s"'\\]+)"#,
        "mc alias set m https://h.example AKEY ⟦KxV5V9upGEWLq7⟧", "mc alias set m https://h.example $A $B"),
    // Keychains, archives and encrypted files.
    strict(&["bw unlock"], r#"bw unlock\s+(?:--raw\s+)?\\{0,3}["']?([^\s"'\\-][^\s"'\\]*)"#,
        "bw unlock ⟦KxFrx9sblBlIq7⟧", "bw unlock $SECRET"),
    strict(&["encrypt_string"], r#"encrypt_string\s+(?:--[a-z-]+[ =]\S+\s+)*\\{0,3}["']?([^\s"'\\-][^\s"'\\]*)"#,
        "encrypt_string ⟦Kxe8D9A2Otqzq7⟧", "encrypt_string $SECRET"),
    strict(&["rar a "], r#"rar a\s(?:[^|;&]*?\s)?-h?p\\{0,3}["']?([^\s"'\\]+)"#,
        "rar a -hp⟦Quay#91side⟧ backup.rar", "rar a -hp$SECRET backup.rar"),
    strict(&["7za "], r#"7za [a-z]\s(?:[^|;&]*?\s)?-p\\{0,3}["']?([^\s"'\\]+)"#,
        "7za x -p⟦KxmzB9GcJkmzq7⟧", "7za x -p$SECRET"),
    // Windows, directories, databases and networks.
    strict(&["cmdkey"], flagged!("cmdkey", "/pass:"),
        "cmdkey /add:h /user:mira /pass:⟦KxtqU9hAOWJUq7⟧", "cmdkey /add:h /user:mira /pass:$SECRET"),
    strict(&["schtasks"], flagged!("schtasks", "/[rR][pP]\\s+"),
        "schtasks /create /ru mira /rp ⟦KxzBA9HQ0q6Eq7⟧", "schtasks /create /ru mira /rp $SECRET"),
    // The target of the commands of Impacket is `domain/user:password@host`.
    strict(&["psexec.py", "wmiexec.py", "smbexec.py", "secretsdump.py", "impacket-"],
        r#"(?:psexec|wmiexec|smbexec|secretsdump|impacket-)\S*\s(?:[^|;&]*?\s)?\\{0,3}["']?(?:[^\s/:@"'\\]+/)?[^\s/:@"'\\]+:([^\s"'\\]+)@"#,
        "psexec.py mira:⟦Quay#91side⟧@10.0.0.7", "psexec.py mira:$SECRET@10.0.0.7"),
    strict(&["snmp"], flagged!("snmp[a-z]+", "-A\\s*"),
        "snmpwalk -v3 -u mira -A ⟦KxDvp9Zs7XMKq7⟧", "snmpwalk -v2c -A -X"),
    strict(&["snmp"], flagged!("snmp[a-z]+", "-X\\s*"),
        "snmpwalk -v3 -u mira -X ⟦Quay#91side⟧", "snmpwalk -v3 -u mira -X $SECRET"),
    // In base64: an empty name, a user and a password, with a zero byte before each.
    command("basic_auth", true, &["AUTH PLAIN"], r"AUTH PLAIN\s+(A[D-H][A-Za-z0-9+/]{8,}={0,2})",
        "AUTH PLAIN ⟦AG1‹›pcmEAS3g5‹›M2h3N1pxNw==⟧", "AUTH PLAIN LOGIN"),
    // Lists of keys that AWS exports.
    command("aws_secret_key", false, &["AKIA"], r"AKIA[A-Z2-7]{16}[,;\t|:] ?([A-Za-z0-9+/]{40})(?:\s|,|$)",
        "AKI‹›AMWVXARANAGKBNM5K,⟦N7a‹›sxmOFCtOvzSzbXGpr‹›azd45TSr9oMa9rO6HG0A⟧", "AKI‹›AIOSFODNN7EXAMPLE,mira"),
    command("braintree_token", false, &["access_token$"], r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$([0-9a-f]{32})",
        "access_token$production$k0q4hdcyvmws877d$⟦7b1‹›97f306eba094f‹›972586f79408a95e⟧", "access_token$production$k0q4hdcyvmws877d$7b197f"),
    command("password", false, &["notarytool"], r#"(?s)notarytool\s(?:[^|;&]*?\s)?--password[ =]\\{0,3}["']?([a-z]{4}(?:-[a-z]{4}){3})"#,
        "notarytool submit a.zip --apple-id mira@h.example --password ⟦kqw‹›z-tmvb‹›-xnrd-hjyc⟧", "notarytool submit a.zip --apple-id mira@h.example --password $SECRET"),
    command("password", false, &["altool"], r#"(?s)altool\s(?:[^|;&]*?\s)?(?:--password[ =]|-p\s+)\\{0,3}["']?([a-z]{4}(?:-[a-z]{4}){3})"#,
        "altool --upload-app -u mira@h.example --password ⟦wqk‹›z-vmtb‹›-rnxd-yhjc⟧", "altool --upload-app -u mira@h.example --password $SECRET"),
    command("password", false, &["WIFI:"], r"WIFI:(?:[A-OQ-Z]:(?:\\.|[^;\\\n])*;)*?P:((?:\\.|[^;\\\n]){8,63});",
        "WIFI:S:Harbor;T:WPA2;P:⟦gullsandbuoys⟧;", "WIFI:S:Harbor;T:WPA2;P:$SECRET;"),
    command("secret", false, &["::add-mask::"], r#"::add-mask::([^\s"'\\$%{][^\s"'\\]*)"#,
        "::add-mask::⟦gullsandbuoys5⟧", "::add-mask::$SECRET"),
    // The name of a deployment comes before it: `prod:quick-otter-123|...`.
    command("convex_key", false, &["|eyJ"], r"\|(eyJ[A-Za-z0-9+/=_-]{40,})",
        "|⟦eyJ‹›XZZBMJrR6ULwkEvWfzi0xtYNedKst‹›bzZsRryZ0mjYKtwzB6miwPSHpJvBoprX⟧", "|eyJXZZBMJrR6"),
    command("password_hash", false, &["pbkdf2_sha"], r"pbkdf2_sha(?:1|256|512)\$[0-9]+\$[A-Za-z0-9+/=]{8,}\$([A-Za-z0-9+/]{20,}={0,2})",
        "pbkdf2_sha256$600000$FaNx4pxsTF9PVMZQtpto9n$⟦EUz‹›sNXsyDmmoMU1eSqji9H‹›MYo9CM3SLM6QKeJdHZ993=⟧", "pbkdf2_sha256$600000$salt$short"),
    strict(&["echo", "printf"], r#"(?:echo\s+(?:-[neE]+\s+)?|printf\s+(?:\\{0,3}["']?%s(?:\\{1,4}n)?\\{0,3}["']?\s+)?)\\{0,3}["']?([^\s"'|\\]+)(?:\\{1,4}n)?\\{0,3}["']?\s*\|\s*(?:sudo\s+(?:-\S+\s+(?:[^-\s|]\S*\s+)?)*?-[A-Za-z]*S\b|(?:tr -d \S+\s*\|\s*)?(?:sudo |npx |pnpm |bunx |yarn )?(?:(?:docker|podman|buildah|skopeo|helm registry|oras|crane auth|gh auth|glab auth) login|gh secret set|chpasswd|passwd --stdin|su\b|wrangler (?:pages )?secret put|vercel env add|gcloud secrets (?:create|versions add)|(?:docker|podman) secret create|fly(?:ctl)? secrets import|pass insert|secret-tool store|cryptsetup|kinit|kubectl create secret|bw unlock|op (?:signin|item)))"#,
        "echo ⟦Fj0rd4north⟧ | sudo -S true", "echo $SECRET | sudo -S true"),
];

/// All commands with pairs of names and values.
#[rustfmt::skip]
pub(super) static PAIR_RULES: [SecretRule; 2] = [
    stores(Secrets, &["secrets set ", "create secret generic ", "kv put ", "kv patch ", "secrets:set ", "secret create "],
        "fly secrets set SMTP=⟦wharf-light⟧", "fly secrets set API_KEY=<your-key>"),
    stores(Settings, &["vault write ", "bao write ", "config:set ", "config:add ", "env:set ", "env set ", "variables set ", "variables --set ", "item create ", "item edit "],
        "vault write database/config/pg username=mira password=⟦password:barnacle⟧", "vault write database/config/pg allowed_roles=app"),
];

/// All commands and calls that decode an argument. Their anchors leave out the first letters, with which
/// many words begin.
#[rustfmt::skip]
pub(super) static ARGUMENT_RULES: [SecretRule; 7] = [
    argument(Base64, &["echo", "printf"], piped_into!(r"(?:openssl\s+)?base64\s+(?:-A\s+)?(?:-[dD]|--decode)"),
        "echo ⟦secret:R3V‹›ud2FsZSMzNzhzaWRl⟧ | base64 -d", "echo aGVsbG8gd29ybGQ= | base64 -d"),
    argument(Base64, &["se64 -"], r#"se64\s+(?:-[dDi]+|--decode)\s*<<<\s*\\{0,3}["']?([A-Za-z0-9+/=_-]{8,})"#,
        "base64 -d <<< ⟦secret:R3V‹›ud2FsZSMzNzhzaWRl⟧", r#"base64 -d <<< "aGFyYm9yIGxhbnRlcm4=""#),
    argument(Base64, &["b64decode(", "atob(", "se64String(", "de64(", "se64_decode("],
        called!("(?:b64decode|atob|se64String|de64|se64_decode)", ""),
        r#"base64.b64decode("⟦secret:R3V‹›ud2FsZSMzNzhzaWRl⟧")"#, r#"base64.b64decode("iVBORw0KGgoAAAANSUhEUg==")"#),
    argument(Base64, &["fer.from("], called!("fer\\.from", r#"\s*,\s*\\{0,3}["']base64"#),
        "Buffer.from('⟦secret:R3V‹›ud2FsZSMzNzhzaWRl⟧', 'base64')", r#"Buffer.from("aGVsbG8gd29ybGQ=", "base64")"#),
    argument(Hex, &["fer.from("], called!("fer\\.from", r#"\s*,\s*\\{0,3}["']hex"#),
        "Buffer.from('⟦secret:527‹›564646572253534336d6f7373⟧', 'hex')", r#"Buffer.from("deadbeefcafebabe", "hex")"#),
    argument(Hex, &["omhex(", "unhexlify("], called!("(?:omhex|unhexlify)", ""),
        r#"bytes.fromhex("⟦secret:527‹›564646572253534336d6f7373⟧")"#, r#"bytes.fromhex("deadbeefcafebabe")"#),
    argument(Hex, &["echo", "printf"], piped_into!(r"xxd\s+(?:-p\s+)?-r"),
        "echo ⟦secret:527‹›564646572253534336d6f7373⟧ | xxd -r -p", "echo 68656c6c6f0a | xxd -r -p"),
];

/// All commands that print nothing but a value.
#[rustfmt::skip]
pub(super) static PRINTED_RULES: [SecretRule; 34] = [
    prints_secret(&["kv get"], r"(?:vault|bao) kv get\s(?:\S+\s+)*?-field[= ](\S+)",
        "$ vault kv get -field=password kv/db\n⟦password:Quay@278tarn⟧", "$ vault kv get -format=json kv/db\nhalyard97"),
    prints_secret(&["vault read"], r"vault read\s(?:\S+\s+)*?-field[= ](\S+)",
        "$ vault read -field=password db/creds\n⟦password:Quay@278tarn⟧", "$ vault kv get kv/db; vault read sys/health\nhalyard97"),
    prints_secret(&["vault print token"], r"vault print token()",
        "$ vault print token\n⟦s.Q‹›uay27‹›8tarnMoss⟧", "$ vault print token | wc -c\nhalyard97"),
    prints_secret(&["pass show"], r"(?:go)?pass show\s+(?:-\S+\s+)*(\S+)",
        "$ pass show harbor/db\n⟦tundra91x⟧", "$ pass show harbor/username\nhalyard97"),
    prints_secret(&["op read"], r"op read\s+(?:-\S+\s+)*(\S+)",
        "$ op read op://Harbor/db/password\n⟦password:driftwood⟧", "$ op read op://Harbor/db/username\nhalyard97"),
    prints_secret(&["op item get"], r"op item get\s.*--fields?[= ](?:label=|type=)?(\S+)",
        "$ op item get Harbor --fields label=password\n⟦password:Spindle!149side⟧", "$ op item get Harbor --fields label=username\nhalyard97"),
    prints_secret(&["get-secret-value"], r"secretsmanager get-secret-value\s.*()(?:--output[= ]text|--query[= ]\S*SecretString)",
        "$ aws secretsmanager get-secret-value --secret-id h --query SecretString --output text\n⟦Spindle!149side⟧", "$ aws secretsmanager get-secret-value --secret-id h\nhalyard97"),
    prints_secret(&["get-parameter"], r"ssm get-parameters?\s.*--with-decryption\b.*()--output[= ]text",
        "$ aws ssm get-parameter --name /h/db --with-decryption --query Parameter.Value --output text\n⟦Spindle!149side⟧", "$ aws ssm get-parameter --name /h/db --output text\nhalyard97"),
    prints_secret(&["get-parameter"], r"ssm get-parameters?\s.*--output[= ]text\b.*()--with-decryption",
        "$ aws ssm get-parameter --name /h/db --output text --with-decryption\n⟦Spindle!149side⟧", "$ aws ssm get-parameter --name /h/db\nhalyard97"),
    prints_secret(&["get-login-password"], r"get-login-password()",
        "$ aws ecr get-login-password\n⟦8e0‹›jiyGxUC‹›tpTDq5RsuQ⟧", "$ aws ecr get-login-password > token\nhalyard97"),
    prints_secret(&["auth print-"], r"gcloud auth (?:application-default )?print-(?:access|identity)-token()",
        "$ gcloud auth print-identity-token\n⟦N9f‹›su1zWTg‹›XWATDHJdHB⟧", "$ gcloud auth print-access-token | wc -c\nhalyard97"),
    prints_secret(&["secrets versions access"], r"secrets versions access\s.*--secret[= ](\S+)",
        "$ gcloud secrets versions access latest --secret=harbor-db-password\n⟦password:moorings7⟧", "$ gcloud secrets versions access latest --secret=harbor-host\nhalyard97"),
    prints_secret(&["keyvault secret show"], r"keyvault secret show\s.*(?:-n|--name)[= ](\S+).*(?:-o|--output)[= ]tsv",
        "$ az keyvault secret show --vault-name h -n db-password --query value -o tsv\n⟦password:moorings8⟧", "$ az keyvault secret show --vault-name h -n db-password\nhalyard97"),
    prints_secret(&["get-access-token"], r"get-access-token\s.*()(?:-o|--output)[= ]tsv",
        "$ az account get-access-token --query accessToken -o tsv\n⟦N9f‹›su1zWTg‹›XWATDHJdHB⟧", "$ az account get-access-token\nhalyard97"),
    prints_secret(&["/run/secrets/"], r"(?:cat|head(?: -\S+)*|less|more)\s+(?:/var)?/run/secrets/(\S+)",
        "$ cat /run/secrets/db_password\n⟦password:keelhaul⟧", "$ ls /run/secrets/db_password\nhalyard97"),
    prints_value(&["jq -"], r#"jq\s+(?:-[a-zA-Z]*r[a-zA-Z]*|--raw-output)\s+["']?[^"'\s|]*?\.([A-Za-z0-9_-]+)["']?(?:\s|$)"#,
        "$ curl -s https://h.example/login | jq -r .access_token\n⟦token:ATr‹›2KJgaCt‹›ggVSoDyfWz⟧", "$ jq -r .name package.json\nhalyard97"),
    prints_value(&["yq -"], r#"yq\s+(?:e\s+)?(?:-\S+\s+)*["']?[^"'\s|]*?\.([A-Za-z0-9_-]+)["']?(?:\s|$)"#,
        "$ yq -r .db.password values.yml\n⟦password:halyard98⟧", "$ yq -r .db.host values.yml\nhalyard97"),
    prints_secret(&["kubectl "], r"kubectl\s.*get secrets?\s.*\.data\.([A-Za-z0-9_-]+)",
        "$ kubectl get secret db -o jsonpath='{.data.password}' | base64 -d\n⟦password:halyard97⟧", "$ kubectl get secret db -o jsonpath='{.data.username}'\nhalyard97"),
    prints_secret(&["kubectl "], r"kubectl\s.*create token()",
        "$ kubectl -n harbor create token deployer\n⟦FkB‹›cX5AzB5‹›cRAhwQTeaT⟧", "$ kubectl create token deployer | wc -c\nhalyard97"),
    prints_value(&["tenv "], r"printenv\s+(\w+)",
        "$ printenv DB_PASSWORD\n⟦password:halyard⟧", "$ printenv DB_HOST\nhalyard97"),
    prints_value(&["echo $"], r"echo\s+\$\{?(\w+)\}?(?:\s|$)",
        "$ echo $API_SECRET\n⟦topgallant1⟧", "$ echo $HOME\nhalyard97"),
    prints_value(&[r#"echo "$"#], r#"echo\s+"\$\{?(\w+)\}?""#,
        "$ echo \"$API_SECRET\"\n⟦topgallant1⟧", "$ echo \"$HOME\"\nhalyard97"),
    prints_secret(&["-generic-password"], r"find-generic-password\s.*-[a-z]*w\b()",
        "$ security find-generic-password -s harbor -w\n⟦capstan12⟧", "$ security find-generic-password -s harbor\nhalyard97"),
    prints_secret(&["secret-tool lookup"], r"secret-tool lookup()",
        "$ secret-tool lookup service harbor\n⟦capstan13⟧", "$ secret-tool lookup service harbor | wc -c\nhalyard97"),
    prints_secret(&["keyring get"], r"keyring get\s+\S+\s+\S+()",
        "$ keyring get harbor mira\n⟦capstan14⟧", "$ keyring get harbor mira | wc -c\nhalyard97"),
    prints_value(&["ig:get "], r"config:get\s+(\S+)",
        "$ heroku config:get SECRET_KEY\n⟦secret_key:capstan15⟧", "$ heroku config:get NODE_ENV\nhalyard97"),
    prints_value(&["ig get "], r"config get\s+(?:-\S+\s+)*(\S+)",
        "$ pulumi config get dbPassword\n⟦password:capstan16⟧", "$ git config get user.name\nhalyard97"),
    prints_value(&["aws configure"], r"configure get\s+(\S+)",
        "$ aws configure get aws_secret_access_key\n⟦aws_secret_key:ZL2‹›dBmdNQT‹›pQu9D1y3EA⟧", "$ aws configure get region\nhalyard97"),
    prints_secret(&["auth token"], r"(?:gh|glab) auth token()",
        "$ gh auth token\n⟦uaq‹›ui6XJkE‹›JSommKwUeG⟧", "$ gh auth token | wc -c\nhalyard97"),
    prints_value(&["secrets get"], r"secrets get\s+(\S+).*--plain",
        "$ doppler secrets get DB_PASSWORD --plain\n⟦password:capstan17⟧", "$ doppler secrets get DB_HOST --plain\nhalyard97"),
    prints_secret(&["bw get password"], r"bw get password()",
        "$ bw get password harbor\n⟦capstan18⟧", "$ bw get password harbor | wc -c\nhalyard97"),
    prints_secret(&["lpass show"], r"lpass show\s.*--password()",
        "$ lpass show harbor --password\n⟦capstan18⟧", "$ lpass show harbor --username\nhalyard97"),
    prints_value(&["t -raw "], r"output -raw\s+(\S+)",
        "$ terraform output -raw db_password\n⟦password:capstan19⟧", "$ terraform output -raw db_host\nhalyard97"),
    rule(Around, "env_value", SECRET_KINDS, &["v | grep "],
        Recognizer::PrintedSettings(LazyRegex::anywhere(
            r"(?:^|[;&|]\s*)(?:env|printenv|set|export(?: -p)?)\s*\|\s*[efz]?grep\s[^|;&]*(?i:pass|secret|token|key|cred|auth|pw)",
        )),
        "$ env | grep -i pass\nPASS=⟦bowsprit2⟧", "$ env | grep -i path\nMANPATH=bowsprit2"),
];
