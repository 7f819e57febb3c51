//! Recognizes well-known tokens by their shapes, which differ from service to service.
//!
//! Each shape has short anchors, which one pass over the text searches (`anchors.rs`), and a regex
//! that is tried only at the places found. If the regex has a group, the group is the secret.
//! Secrets that are recognized by the text around them are found in `assign.rs`, `context.rs`,
//! `commands.rs` and `pem.rs`.

use super::entropy::{is_made_up, is_random};
use super::pattern::PrefixPattern;
use super::scan::{Rank, SecretScan, is_identifier_byte, is_token};
use super::wrapped;

/// Minimum length of a token in bytes.
const MIN_TOKEN_BYTES: usize = 20;

/// Maximum length of a token in bytes.
const MAX_TOKEN_BYTES: usize = 8 << 10;

/// Where a match may begin.
#[derive(Clone, Copy)]
pub(super) enum TokenLead {
    /// At the anchor, with no letter or digit before it.
    Word,
    /// At the anchor, whatever is before it.
    Any,
    /// Where the run of bytes of the given class before the anchor begins, if the run has at most
    /// this many bytes.
    Back(usize, fn(&u8) -> bool),
}

/// The shape of one kind of token.
pub(super) struct TokenShape {
    pub(super) kind: &'static str,
    /// Anchors of at least four bytes each. `?` matches a letter, digit, `_` or `-`, `#` matches a
    /// hex digit, `^` matches a digit.
    pub(super) anchors: &'static [&'static str],
    pub(super) regex: &'static str,
    pub(super) lead: TokenLead,
}

/// Creates a shape that begins at its anchor, with no letter or digit before it.
const fn word(
    kind: &'static str,
    anchors: &'static [&'static str],
    regex: &'static str,
) -> TokenShape {
    TokenShape { kind, anchors, regex, lead: TokenLead::Word }
}

/// Creates a shape that begins at its anchor, with any text before it.
const fn inner(
    kind: &'static str,
    anchors: &'static [&'static str],
    regex: &'static str,
) -> TokenShape {
    TokenShape { kind, anchors, regex, lead: TokenLead::Any }
}

/// Creates a shape that begins with at most `max` bytes of a class before its anchor.
const fn back(
    kind: &'static str,
    max: usize,
    class: fn(&u8) -> bool,
    anchors: &'static [&'static str],
    regex: &'static str,
) -> TokenShape {
    TokenShape { kind, anchors, regex, lead: TokenLead::Back(max, class) }
}

impl TokenShape {
    /// Returns whether every anchor is the beginning of the token itself and has at least
    /// [`MIN_FIXED_CHARS`]. Such a token is found even after a `-` or `_`, because names of files
    /// are joined to tokens this way.
    fn is_distinctive(&self) -> bool {
        self.has_fixed_chars(MIN_FIXED_CHARS)
    }

    /// Returns whether every anchor is the beginning of the token itself and has at least `count`
    /// characters other than wildcards.
    fn has_fixed_chars(&self, count: usize) -> bool {
        self.anchors.iter().all(|anchor| {
            let wildcards = anchor.bytes().filter(|byte| matches!(byte, b'?' | b'#' | b'^'));
            !anchor.contains(['=', ':', '/', ' ', '"', '\''])
                && anchor.len() - wildcards.count() >= count
        })
    }

    /// Returns whether every anchor has three characters, one of which is a sign that few words have.
    fn is_signed(&self) -> bool {
        self.has_fixed_chars(3)
            && self.anchors.iter().all(|anchor| anchor.contains(['_', '-', '.']))
    }

    /// Returns whether `text` is a token of the shape although another word is joined to it:
    /// `exec_commandghp_...`. `neighbour` is the character of the other word. Data in base64 has such
    /// tokens by chance if three characters identify them, so `is_near_boundary` tells whether the
    /// token or the word before it begins after something else.
    fn is_joined_token(&self, text: &str, neighbour: u8, is_near_boundary: bool) -> bool {
        if matches!(neighbour, b'-' | b'_') && self.is_distinctive() {
            return true;
        }
        if !is_random(text) || !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return false;
        }
        // `AKIA...` has no small letters.
        if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
            return self.is_distinctive() && neighbour.is_ascii_lowercase();
        }
        let is_signed = self.is_signed();
        let is_long = is_signed && is_near_boundary && text.len() >= MIN_JOINED_CHARS;
        // `EAAA` occurs in the base64 of any data, `AIza` does not.
        let is_unlike_data = is_signed
            || self
                .anchors
                .iter()
                .all(|anchor| anchor.bytes().any(|byte| byte.is_ascii_lowercase()));
        is_unlike_data && self.has_fixed_chars(if is_long { 3 } else { MIN_FIXED_CHARS })
    }
}

/// Minimum number of characters other than wildcards in an anchor that identifies a token inside a
/// longer word.
const MIN_FIXED_CHARS: usize = 4;

/// Minimum length of a token that is identified inside a longer word by three characters.
const MIN_JOINED_CHARS: usize = 32;

/// Maximum length in bytes of a word to which such a token is joined. Longer ones are data.
const MAX_JOINED_WORD_BYTES: usize = 24;

/// Returns whether a byte is a letter, a digit, `_`, `~` or `.`.
const fn is_tilde_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(*byte, b'_' | b'~' | b'.')
}

/// Returns whether a byte is a letter, a digit, `_` or `-`.
const fn is_word_or_dash(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(*byte, b'_' | b'-')
}

/// Masks the token of a shape whose anchor is at `at`.
pub(super) fn mask_token(
    scan: &mut SecretScan<'_>,
    at: usize,
    shape: &'static TokenShape,
    pattern: &PrefixPattern,
) {
    let start = match shape.lead {
        TokenLead::Any => at,
        TokenLead::Word if scan.may_begin_token(at) => at,
        // Whether the token may be joined to the word before it is decided when it is known.
        TokenLead::Word if shape.is_distinctive() || shape.is_signed() => at,
        TokenLead::Word => return,
        TokenLead::Back(max_length, class) => {
            let lead = scan.bytes().get(..at).unwrap_or_default().iter().rev();
            let length = lead.take(max_length + 1).take_while(|byte| class(byte)).count();
            if length > max_length {
                return;
            }
            at - length
        }
    };

    // `path/to` begins like a token, and many words do.
    let is_short = scan.skip_while(start, MIN_TOKEN_BYTES, is_token) - start < MIN_TOKEN_BYTES;
    if is_short && !shape.is_distinctive() && !scan.may_begin_token(start) {
        return;
    }
    if !scan.may_try(start) {
        return;
    }
    if is_short {
        return wrapped::mask_wrapped_token(scan, start, shape.kind, pattern);
    }

    let window = scan.text_from(start, MAX_TOKEN_BYTES);
    let Some(found) = pattern.at_start(window) else {
        return wrapped::mask_wrapped_token(scan, start, shape.kind, pattern);
    };
    let Some(secret) = found.get(1).or_else(|| found.get(0)) else { return };
    // A secret that fills the window ends only because the window ends, and `=` ends a padded one.
    let is_word_start = scan.may_begin_token(start);
    let next = scan.byte(start + secret.end());
    let is_cut = is_identifier_byte(next)
        && secret.end() < window.len()
        && !secret.as_str().ends_with('=')
        && !shape.is_joined_token(secret.as_str(), next, is_word_start);
    let is_inside_word = matches!(shape.lead, TokenLead::Word) && !is_word_start && {
        let word_start = scan.run_start(start, MAX_JOINED_WORD_BYTES + 1, is_token);
        let is_near_boundary = start - word_start <= MAX_JOINED_WORD_BYTES;
        !shape.is_joined_token(secret.as_str(), scan.byte_before(start), is_near_boundary)
    };
    if !is_cut && !is_inside_word && !is_made_up_token(secret.as_str()) {
        scan.note_token_found(start);
        scan.add_secret(start + secret.start(), start + secret.end(), shape.kind, Rank::Shape);
    }
}

/// Returns whether a text in the shape of a token was made up. Some shapes include a `=` and the
/// text after it, which may not belong to the token. In that case the part before the `=` has to be
/// made up, too.
fn is_made_up_token(secret: &str) -> bool {
    let secret = secret.get(4..).unwrap_or_default();
    let body = secret.split('=').next().unwrap_or_default();
    is_made_up(secret) && (body.len() < MIN_TOKEN_BYTES - 4 || is_made_up(body))
}

/// All shapes, grouped by the kind of service.
#[rustfmt::skip]
pub(super) const SHAPES: &[TokenShape] = &[
    // Code hosts and registries.
    word("github_token", &["ghp_?"], r"ghp_[A-Za-z0-9]{36,251}"),
    word("github_fine_grained", &["github_pat_"], r"github_pat_[A-Za-z0-9_]{40,}"),
    word("github_oauth", &["gho_?"], r"gho_[A-Za-z0-9]{36,251}"),
    word("github_app_token", &["ghs_?", "ghu_?"], r"gh[su]_[A-Za-z0-9_-]{36,}(?:\.[A-Za-z0-9_-]{16,}){0,2}"),
    word("github_refresh_token", &["ghr_?"], r"ghr_[A-Za-z0-9]{36,251}"),
    word("gitlab_token", &["glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-", "glwt-"],
        r"gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[A-Za-z0-9_=-]{20,}(?:\.[A-Za-z0-9_]+)*"),
    word("bitbucket_token", &["ATBB?"], r"ATBB[A-Za-z0-9]{32}"),
    word("atlassian_token", &["ATATT3", "ATCTT3"], r"AT[AC]TT3[A-Za-z0-9_=-]{60,}"),
    word("npm_token", &["npm_?"], r"npm_[A-Za-z0-9]{36}"),
    word("pypi_token", &["pypi-A"], r"pypi-A[A-Za-z0-9_-]{50,}"),
    word("cratesio_token", &["cio?"], r"cio[A-Za-z0-9]{32}"),
    word("rubygems_key", &["rubygems_#"], r"rubygems_[0-9a-f]{48}"),
    word("dockerhub_token", &["dckr_pat_", "dckr_oat_"], r"dckr_[op]at_[A-Za-z0-9_-]{27,}"),
    word("clojars_token", &["CLOJARS_?"], r"CLOJARS_[a-z0-9]{60}"),
    word("artifactory_key", &["AKCp?"], r"AKCp[A-Za-z0-9]{69}"),
    // Models.
    word("openai_key", &["sk-?"], r"sk-(?:(?:proj|svcacct|service|admin|None)-[A-Za-z0-9_-]{32,}|[A-Za-z0-9]{32,})"),
    word("anthropic_key", &["sk-ant-"], r"sk-ant-[a-z0-9]{2,12}-[A-Za-z0-9_-]{32,}"),
    word("openrouter_key", &["sk-or-"], r"sk-or-(?:v[0-9]-)?[0-9a-f]{64}"),
    word("langfuse_key", &["sk-lf-"], r"sk-lf-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    word("elevenlabs_key", &["sk_#"], r"sk_[0-9a-f]{48}"),
    word("google_api_key", &["AIza", "AQ.A"], r"A(?:Iza[A-Za-z0-9_-]{35}|Q\.A[A-Za-z0-9_-]{35,})"),
    word("huggingface_token", &["hf_?", "api_org_?"], r"(?:hf|api_org)_[A-Za-z0-9]{34,40}"),
    word("groq_key", &["gsk_?"], r"gsk_[A-Za-z0-9]{52}"),
    word("xai_key", &["xai-?"], r"xai-[A-Za-z0-9]{70,}"),
    word("perplexity_key", &["pplx-?"], r"pplx-[A-Za-z0-9]{40,}"),
    word("replicate_token", &["r8_?"], r"r8_[A-Za-z0-9]{37}"),
    word("cerebras_key", &["csk-?"], r"csk-[a-z0-9]{48}"),
    word("nvidia_key", &["nvapi-?"], r"nvapi-[A-Za-z0-9_-]{60,}"),
    word("pinecone_key", &["pcsk_?"], r"pcsk_[A-Za-z0-9_]{50,}"),
    word("langsmith_key", &["lsv2_pt_", "lsv2_sk_"], r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    word("tavily_key", &["tvly-?"], r"tvly-[A-Za-z0-9-]{28,}"),
    word("firecrawl_key", &["fc-#"], r"fc-[0-9a-f]{32}"),
    word("jina_key", &["jina_?"], r"jina_[A-Za-z0-9_-]{50,}"),
    word("wandb_key", &["wandb_v1_"], r"wandb_v1_[A-Za-z0-9_]{40,}"),
    word("e2b_key", &["e2b_#"], r"e2b_[0-9a-f]{40}"),
    word("apify_token", &["apify_api_"], r"apify_api_[A-Za-z0-9]{36}"),
    // Clouds and hosting.
    word("aws_access_key_id", &["AKIA", "ASIA", "ABIA", "ACCA"], r"A(?:KI|SI|BI|CC)A[A-Z2-7]{16}"),
    word("aws_bedrock_key", &["ABSK"], r"ABSK[A-Za-z0-9+/]{100,}={0,2}"),
    inner("aws_presigned_url", &["Amz-Signature=", "Amz-Security-Token="], r"Amz-S(?:ignature|ecurity-Token)=([A-Za-z0-9%/+=_-]{32,})"),
    word("google_oauth_secret", &["GOCSPX-"], r"GOCSPX-[A-Za-z0-9_-]{24,}"),
    word("google_oauth_token", &["ya29."], r"ya29\.(?:[a-z]\.)?[A-Za-z0-9_-]{30,}"),
    word("google_refresh_token", &["1//0?"], r"1//0[A-Za-z0-9_-]{40,}"),
    inner("azure_storage_key", &["tKey="], r"tKey=([A-Za-z0-9+/]{86}==)"),
    inner("azure_access_key", &["sKey="], r"sKey=([A-Za-z0-9+/]{40,88}={0,2})"),
    word("azure_sas", &["sig=?"], r"sig=([A-Za-z0-9+/%_-]{40,}(?:%3[Dd]|=))"),
    back("azure_client_secret", 3, is_tilde_word, &["^Q~?"], r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    back("azure_devops_token", 76, u8::is_ascii_alphanumeric, &["AZDO"], r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    word("digitalocean_token", &["dop_v1_", "doo_v1_", "dor_v1_"], r"do[opr]_v1_[0-9a-f]{64}"),
    word("heroku_key", &["HRKU-"], r"HRKU-[A-Za-z0-9_-]{36,}"),
    word("vercel_token", &["vcp_?", "vci_?", "vca_?", "vcr_?", "vck_?", "vercel_blob_rw_"], r"vc[piark]_[A-Za-z0-9]{24,}|vercel_blob_rw_[A-Za-z0-9_]{30,}"),
    word("netlify_token", &["nfp_?", "nfo_?", "nfc_?", "nfu_?", "nfb_?"], r"nf[pocub]_[A-Za-z0-9]{36,}"),
    word("cloudflare_token", &["cfk_?", "cfut_", "cfat_"], r"cf(?:k|ut|at)_[A-Za-z0-9]{40,}"),
    word("cloudflare_origin_ca", &["v1.0-#"], r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    word("fly_token", &["fo1_", "fm1_", "fm1a_", "fm1r_", "fm2_"], r"f(?:o1_[A-Za-z0-9_-]{43}|m[12][ar]?_[A-Za-z0-9+/=_-]{60,})"),
    word("supabase_key", &["sbp_#", "sb_secret_"], r"sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{22,}"),
    word("planetscale_token", &["pscale_"], r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=-]{32,}"),
    word("neon_key", &["napi_?"], r"napi_[a-z0-9]{60,}"),
    word("databricks_token", &["dapi#"], r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    word("alibaba_key_id", &["LTAI?"], r"LTAI[A-Za-z0-9]{20}"),
    word("tailscale_key", &["tskey-"], r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,}"),
    // Secret stores, infrastructure, monitoring.
    word("vault_token", &["hvs.?", "hvb.?", "hvr.?"], r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    back("terraform_token", 14, u8::is_ascii_alphanumeric, &[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
    word("doppler_token", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."], r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    word("pulumi_token", &["pul-#"], r"pul-[0-9a-f]{40}"),
    word("onepassword_token", &["ops_eyJ"], r"ops_eyJ[A-Za-z0-9+/_-]{100,}={0,3}"),
    word("grafana_token", &["glc_?", "glsa_", "eyJrIjoi"], r"glc_[A-Za-z0-9+/]{32,}={0,3}|glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}|eyJrIjoi[A-Za-z0-9]{70,}={0,3}"),
    word("sentry_token", &["sntrys_", "sntryu_"], r"sntry(?:s_[A-Za-z0-9+/=_-]{60,}|u_[0-9a-f]{64})"),
    word("newrelic_key", &["NRAK-", "NRII-"], r"NR(?:AK-[A-Z0-9]{27}|II-[A-Za-z0-9_-]{32})"),
    back("newrelic_key", 40, u8::is_ascii_alphanumeric, &["NRAL"], r"[0-9a-f]{32,36}(?:FFFF)?NRAL"),
    word("posthog_key", &["phx_?"], r"phx_[A-Za-z0-9_]{40,}"),
    word("sonar_token", &["sqp_#", "squ_#", "sqa_#"], r"sq[pua]_[0-9a-f]{40}"),
    word("circleci_token", &["CCIPAT_"], r"CCIPAT_[A-Za-z0-9]+_[0-9a-f]{40}"),
    word("buildkite_token", &["bkua_#"], r"bkua_[0-9a-f]{40}"),
    word("prefect_key", &["pnu_?", "pnb_?"], r"pn[ub]_[A-Za-z0-9]{36}"),
    // Messages and mail.
    word("slack_token", &["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"],
        r"xox(?:[a-eoprs]|e\.xox[bp])-[A-Za-z0-9%/+=-]{20,}|xapp-[0-9]-[A-Z0-9]+-[0-9]+-[A-Za-z0-9]{20,}"),
    inner("google_signature", &["Goog-Signature="], r"Goog-Signature=([0-9a-f]{64,})"),
    word("oauth_code", &["code="], r"code=((?:4(?:/|%2F)0)[A-Za-z0-9_-]{30,}|[A-Za-z0-9_]{40,})"),
    inner("slack_webhook", &["slack.com/"], r"slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/]{20,})"),
    inner("discord_webhook", &["/webhooks/"], r"/webhooks/[0-9]{15,21}/([A-Za-z0-9_-]{50,})"),
    inner("teams_webhook", &["/IncomingWebhook/"], r"/IncomingWebhook/([0-9a-f]{32}/[0-9a-f-]{36})"),
    back("telegram_bot_token", 10, u8::is_ascii_digit, &[":AA?"], r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    word("twilio_key", &["SK##"], r"SK[0-9a-f]{32}"),
    word("sendgrid_key", &["SG.?"], r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    word("mailgun_key", &["key-#"], r"key-[0-9a-f]{32}"),
    back("mailchimp_key", 32, u8::is_ascii_hexdigit, &["-us^"], r"[0-9a-f]{32}-us[0-9]{1,2}"),
    word("resend_key", &["re_?"], r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    word("brevo_key", &["xkeysib-", "xsmtpsib-"], r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    // Payment, shops, office.
    word("stripe_key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_"], r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    word("stripe_webhook_secret", &["whsec_"], r"whsec_[A-Za-z0-9+/]{24,}={0,2}"),
    word("shopify_token", &["shpat_", "shpca_", "shppa_", "shpss_"], r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    word("square_token", &["sq0atp-", "sq0csp-", "sq0csb-", "EAAA?"], r"sq0(?:atp|csp|csb)-[A-Za-z0-9_-]{22,43}|EAAA[A-Za-z0-9_-]{60}"),
    word("linear_key", &["lin_api_", "lin_oauth_"], r"lin_(?:api_[A-Za-z0-9]{40}|oauth_[0-9a-f]{64})"),
    word("notion_token", &["ntn_?", "secret_?"], r"ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}"),
    word("airtable_token", &["pat?"], r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    word("figma_token", &["figd_?"], r"figd_[A-Za-z0-9_-]{40,}"),
    word("postman_key", &["PMAK-"], r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    word("dropbox_token", &["sl.?"], r"sl\.(?:u\.)?[A-Za-z0-9_-]{100,}"),
    word("contentful_token", &["CFPAT-"], r"CFPAT-[A-Za-z0-9_-]{43}"),
    word("sourcegraph_token", &["sgp_#"], r"sgp_(?:[0-9a-f]{16}_)?[0-9a-f]{40}"),
    // Without a particular service.
    word("jwt", &["eyJ?"], r"eyJ[A-Za-z0-9_-]{12,}\.(?:eyJ[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{16,}|[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})"),
    // The same, with a beginning that identifies it inside a longer word.
    word("jwt", &["eyJhbGci", "eyJ0eXAi", "eyJraWQi"], r"eyJ[A-Za-z0-9_-]{12,}\.eyJ[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{16,}"),
    word("openai_key", &["sk-proj-", "sk-svcacct-", "sk-admin-"], r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,}"),
    // In base64: `{"auths":` of container registries.
    word("registry_auth", &["eyJhdXRocyI6"], r"eyJhdXRocyI6[A-Za-z0-9+/]{24,}={0,2}"),
    // Maps, messages, packages, parcels, forms, tasks.
    word("mapbox_token", &["sk.eyJ1"], r"sk\.eyJ1[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    back("firebase_key", 11, is_word_or_dash, &[":APA91b"], r"[A-Za-z0-9_-]{11}:APA91b[A-Za-z0-9_-]{120,150}"),
    word("nuget_key", &["oy2?"], r"oy2[a-z0-9]{43}"),
    word("easypost_key", &["EZAK", "EZTK"], r"EZ[AT]K[A-Za-z0-9]{54}"),
    word("typeform_token", &["tfp_?"], r"tfp_[A-Za-z0-9_-]{40,80}"),
    word("asana_token", &["1/^^", "2/^^"], r"[12]/[0-9]{10,20}(?:/[0-9]{10,20})?:[0-9a-f]{32}"),
    // Hosts of models, of pages and of what agents call.
    word("hubspot_token", &["pat-na1-", "pat-eu1-"], r"pat-[a-z]{2}1-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    word("together_key", &["tgp_v1_"], r"tgp_v1_[A-Za-z0-9_-]{30,}"),
    word("llamacloud_key", &["llx-?"], r"llx-[A-Za-z0-9]{40,}"),
    word("context7_key", &["ctx7sk-"], r"ctx7sk-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    word("runpod_key", &["rpa_?"], r"rpa_[A-Z0-9]{36,}[a-z0-9]{0,8}"),
    word("axiom_token", &["xaat-#", "xapt-#"], r"xa[ap]t-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    word("logfire_token", &["pylf_v"], r"pylf_v[0-9]_(?:[a-z]{2}_)?[A-Za-z0-9]{30,}"),
    word("polar_token", &["polar_oat_", "polar_pat_"], r"polar_[op]at_[A-Za-z0-9]{30,}"),
    word("paddle_key", &["pdl_live_", "pdl_sdbx_"], r"pdl_(?:live|sdbx)_apikey_[A-Za-z0-9_]{40,}"),
    word("mailersend_token", &["mlsn.#"], r"mlsn\.[0-9a-f]{64}"),
    word("snyk_token", &["snyk_uat.", "snyk_sat."], r"snyk_[us]at\.[A-Za-z0-9_.-]{24,}"),
    word("age_key", &["AGE-SECRET-KEY-1"], r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    // Banks, shops and payment.
    word("plaid_token", &["access-sandbox-", "access-development-", "access-production-"], r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    word("flutterwave_key", &["FLWSECK"], r"FLWSECK(?:_TEST)?-[0-9A-Za-z]{12,40}(?:-X)?"),
    word("razorpay_key_id", &["rzp_live_", "rzp_test_"], r"rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    word("duffel_token", &["duffel_test_", "duffel_live_"], r"duffel_(?:test|live)_[A-Za-z0-9_=-]{40,}"),
    word("shippo_token", &["shippo_live_", "shippo_test_"], r"shippo_(?:live|test)_[0-9a-f]{40}"),
    word("flexport_token", &["shltm_"], r"shltm_[A-Za-z0-9_-]{40}"),
    word("ramp_key", &["ramp_sec_", "ramp_id_"], r"ramp_(?:sec|id)_[A-Za-z0-9]{40,}"),
    word("pagarme_key", &["ak_live_", "ak_test_"], r"ak_(?:live|test)_[A-Za-z0-9]{30}"),
    word("recharge_key", &["sk_^x^"], r"sk_[1-5]x[1-5]_[0-9a-f]{60,64}"),
    word("robinhood_key", &["rh-api-"], r"rh-api-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    word("lob_key", &["live_#", "test_#"], r"(?:live|test)_[0-9a-f]{35}"),
    word("bip32_private_key", &["xprv?", "yprv?", "zprv?", "tprv?"], r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{107,108}"),
    // Identity and secret stores.
    word("onepassword_secret_key", &["A3-?"], r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    word("adobe_secret", &["p8e-?"], r"p8e-[A-Za-z0-9]{32}"),
    word("intra42_secret", &["s-s4t2"], r"s-s4t2(?:ud|af)-[0-9a-f]{64}"),
    word("openshift_token", &["sha256~"], r"sha256~[A-Za-z0-9_-]{43}"),
    word("salesforce_refresh_token", &["5AEP861"], r"5AEP861[A-Za-z0-9._=]{80,}"),
    word("zoho_token", &["1000."], r"1000\.[0-9a-f]{32}\.[0-9a-f]{32}"),
    word("facebook_token", &["EAAM?", "EAAC?", "EAAB?", "EAAG?"], r"EAA[MCBG][A-Za-z0-9]{100,}"),
    word("defined_networking_token", &["dnkey-"], r"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),
    // Builds, hosting and monitoring.
    word("artifactory_token", &["cmVmdGtuOj"], r"cmVmdGtuOj[A-Za-z0-9]{54}"),
    word("gitlab_token", &["GR1348941"], r"GR1348941[A-Za-z0-9_-]{20}"),
    word("bitbucket_token", &["BBDC-"], r"BBDC-[A-Za-z0-9+/@_-]{40,}"),
    word("circleci_token", &["CCIPRJ_"], r"CCIPRJ_[A-Za-z0-9]+_[0-9a-f]{40}"),
    word("clickhouse_key", &["4b1d?"], r"4b1d[A-Za-z0-9]{38}"),
    word("deno_token", &["ddp_?", "ddw_?", "ddo_?"], r"dd[pwo]_[A-Za-z0-9]{36}"),
    word("dynatrace_token", &["dt0c01.", "dt0s01.", "dt0s02.", "dt0s16."], r"dt0[cs][0-9]{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    word("endorlabs_key", &["endr+?"], r"endr\+[A-Za-z0-9_-]{16}"),
    word("harness_token", &["pat.?", "sat.?"], r"[ps]at\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    word("honeycomb_key", &["hcaik_", "hcbik_", "hcamk_"], r"hc[ab][im]k_[a-z0-9]{50,}"),
    word("infracost_key", &["ico-?"], r"ico-[A-Za-z0-9]{32}"),
    back("maxmind_key", 36, is_word_or_dash, &["_mmk"], r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    word("newrelic_key", &["NRRA-", "NRIQ-", "NRSP-", "NRJS-"], r"NR(?:RA|IQ|SP|JS)-[A-Za-z0-9_-]{19,42}"),
    word("octopus_key", &["API-?"], r"API-[A-Z0-9]{26}"),
    word("pganalyze_key", &["pgar_"], r"pgar_[A-Za-z0-9_]{20,}"),
    word("portainer_token", &["ptr_?"], r"ptr_[A-Za-z0-9/+_-]{43}="),
    word("rootly_key", &["rootly_#"], r"rootly_[0-9a-f]{64}"),
    word("saladcloud_key", &["salad_cloud_"], r"salad_cloud_[A-Za-z0-9]{1,12}_[A-Za-z0-9]{40,}"),
    word("scalingo_token", &["tk-us-?"], r"tk-us-[A-Za-z0-9_-]{48}"),
    word("settlemint_token", &["sm_aat_", "sm_pat_", "sm_sat_"], r"sm_[aps]at_[A-Za-z0-9]{16,}"),
    word("sonar_token", &["sqco_"], r"sqco_[A-Za-z0-9_-]{40,}"),
    word("sourcegraph_token", &["slk_#"], r"slk_[0-9a-f]{64}"),
    word("spectral_token", &["spu-#"], r"spu-[0-9a-f]{32}"),
    word("ubidots_token", &["BBFF-", "BBUS-"], r"BB(?:FF|US)-[A-Za-z0-9]{30}"),
    word("yandex_key", &["AQVN?", "YCAJ?", "YCM?", "t1.?"], r"AQVN[A-Za-z0-9_-]{35,38}|YC[A-Za-z0-9_-]{38}|t1\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{86}={0,2}"),
    // Models, messages, tasks and design.
    word("adafruit_key", &["aio_?"], r"aio_[A-Za-z0-9]{28}"),
    word("alchemy_key", &["alcht_"], r"alcht_[A-Za-z0-9]{30}"),
    word("bannerbear_key", &["bb_pr_", "bb_ma_"], r"bb_(?:pr|ma)_[0-9a-f]{30}"),
    word("clickup_token", &["pk_^"], r"pk_[0-9]{6,10}_[A-Z0-9]{32}"),
    word("klaviyo_key", &["pk_#"], r"pk_[0-9a-f]{34}"),
    word("figma_token", &["figp_?", "figu_?"], r"fig[pu]_[A-Za-z0-9_-]{40,}"),
    word("frameio_token", &["fio-u-"], r"fio-u-[A-Za-z0-9_=-]{64}"),
    word("onesignal_key", &["os_v2_app_", "os_v2_org_"], r"os_v2_(?:app|org)_[a-z0-9]{60,}"),
    word("pubnub_secret", &["sec-c-"], r"sec-c-[A-Za-z0-9]{40,}"),
    word("readme_token", &["rdme_?"], r"rdme_[a-z0-9]{70}"),
    word("stytch_secret", &["secret-live-", "secret-test-"], r"secret-(?:live|test)-(?:[A-Za-z0-9_-]{40,60}=|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"),
    word("voiceflow_key", &["VF.?"], r"VF\.(?:DM|WS)\.[0-9a-f]{24}\.[A-Za-z0-9]{16}"),
    word("photoroom_key", &["sk_pr_"], r"sk_pr_[A-Za-z0-9_]{30,}"),
    inner("zapier_webhook", &["hooks.zapier.com/"], r"hooks\.zapier\.com/hooks/catch/([A-Za-z0-9/]{15,})"),
    inner("tines_webhook", &["tines.com/webhook/"], r"tines\.com/webhook/([0-9a-f]{32}/[0-9a-f]{32})"),
    // The login of a server of packages, in the settings of Bundler.
    inner("sidekiq_secret", &["CONTRIBSYS__COM"], r#"CONTRIBSYS__COM["' ]{0,2}[=:][ ]?["']?([0-9a-f]{8}:[0-9a-f]{8})"#),
    // In base64: a token of JSON.
    word("jwt", &["ZXlK?"], r"ZXlK[A-Za-z0-9+/_-]{60,}={0,2}"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_shape_is_a_regex_with_anchors_that_select() {
        for shape in SHAPES {
            let regex = regex::Regex::new(shape.regex).expect(shape.kind);
            assert!(regex.captures_len() <= 2, "{}", shape.kind);
            assert!(shape.anchors.iter().all(|anchor| anchor.len() >= 4), "{}", shape.kind);
        }
        let kinds: BTreeSet<_> = SHAPES.iter().map(|shape| shape.kind).collect();
        assert!(kinds.len() >= 80, "{}", kinds.len());
    }
}
