//! Reads which modules and which foreign items every source file uses, from its syntax tree.
//!
//! Unit tests are left out. A path counts wherever it occurs: in a `use`, in code, in a type or among
//! the arguments of a macro. It leads to the file of its longest known beginning, so a re-export
//! counts as a use of the file that re-exports.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn, ItemMod, ItemUse, Macro, Meta, UseTree, Visibility};

/// A path of names. That of a module begins with the name of its crate.
pub(super) type Names = Vec<String>;

/// The crates of the workspace: the name in paths, and the folder.
pub(super) const CRATES: &[(&str, &str)] = &[
    ("sessions", "src"),
    ("base", "crates/base/src"),
    ("store", "crates/store/src"),
    ("search", "crates/search/src"),
    ("sql", "crates/sql/src"),
    ("tools", "crates/tools/src"),
    ("ingest", "ingest/src"),
    ("schemas", "schemas/src"),
    ("xtask", "xtask/src"),
];

/// What one file uses.
#[derive(Default)]
pub(super) struct Uses {
    pub(super) modules: BTreeSet<Names>,
    /// Paths that lead out of the workspace, such as `std::env::var`, and macros, such as
    /// `println!`.
    pub(super) foreign: BTreeSet<String>,
}

/// The files of the workspace by module, with what each uses.
pub(super) struct Imports {
    pub(super) files: BTreeMap<Names, PathBuf>,
    pub(super) uses: BTreeMap<Names, Uses>,
}

impl Imports {
    pub(super) fn read(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        for (name, folder) in CRATES {
            add_files(&root.join(folder), &[(*name).to_owned()], &mut files);
        }
        let read = |(module, path): (&Names, &PathBuf)| {
            let text = std::fs::read_to_string(path).expect("a file");
            let file = syn::parse_file(&text).expect("Rust");
            let mut reader =
                Reader { module, files: &files, aliases: HashMap::new(), uses: Uses::default() };
            ReadUses(&mut reader).visit_file(&file);
            reader.visit_file(&file);
            (module.clone(), reader.uses)
        };
        let uses = files.iter().map(read).collect();
        Self { files, uses }
    }

    /// Returns the groups of modules that use each other in a circle.
    pub(super) fn cycles(&self) -> Vec<BTreeSet<&Names>> {
        let reach: BTreeMap<&Names, BTreeSet<&Names>> =
            self.uses.keys().map(|module| (module, self.reachable(module))).collect();
        let mut groups = BTreeSet::new();
        for (module, reached) in &reach {
            let circle: BTreeSet<&Names> =
                reached.iter().filter(|other| reach[*other].contains(module)).copied().collect();
            if !circle.is_empty() {
                groups.insert(circle);
            }
        }
        groups.into_iter().collect()
    }

    fn reachable(&self, from: &Names) -> BTreeSet<&Names> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&Names> = self.uses[from].modules.iter().collect();
        while let Some(module) = open.pop() {
            if reached.insert(module) {
                open.extend(&self.uses[module].modules);
            }
        }
        reached
    }
}

fn add_files(dir: &Path, module: &[String], files: &mut BTreeMap<Names, PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut inner = module.to_vec();
        if path.is_dir() {
            inner.push(stem);
            add_files(&path, &inner, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            if !matches!(stem.as_str(), "mod" | "lib") {
                inner.push(stem);
            }
            files.insert(inner, path);
        }
    }
}

/// Collects the uses of one file.
struct Reader<'f> {
    module: &'f Names,
    files: &'f BTreeMap<Names, PathBuf>,
    /// Names that a `use` of this file brought in, with their full paths.
    aliases: HashMap<String, Names>,
    uses: Uses,
}

impl Reader<'_> {
    /// Returns a path with all its names: from the crate, or from a foreign crate.
    fn full(&self, path: &[String]) -> Names {
        let (first, rest) = path.split_first().expect("a path has names");
        let mut full = match first.as_str() {
            "crate" => vec![self.module[0].clone()],
            "self" => self.module.clone(),
            "super" => {
                let supers = path.iter().take_while(|name| *name == "super").count();
                let depth = self.module.len().saturating_sub(supers);
                let mut full = self.module[..depth].to_vec();
                full.extend_from_slice(&path[supers..]);
                return full;
            }
            name => {
                let mut child = self.module.clone();
                child.push(name.to_owned());
                match self.aliases.get(name) {
                    Some(alias) => alias.clone(),
                    None if self.files.contains_key(&child) => child,
                    None => vec![name.to_owned()],
                }
            }
        };
        full.extend_from_slice(rest);
        full
    }

    fn add(&mut self, path: &[String]) {
        let full = self.full(path);
        let known = (1..=full.len()).rev().find(|length| self.files.contains_key(&full[..*length]));
        match known {
            Some(length) if full[..length] != self.module[..] => {
                self.uses.modules.insert(full[..length].to_vec());
            }
            Some(_) => {}
            None => {
                self.uses.foreign.insert(full.join("::"));
            }
        }
    }

    fn add_tree(&mut self, before: &mut Names, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_tree(before, tree));
            }
            UseTree::Name(name) if name.ident == "self" => {
                let alias = before.last().expect("a name before `self`").clone();
                self.add_alias(before, alias);
            }
            UseTree::Name(name) => {
                let alias = name.ident.to_string();
                before.push(alias.clone());
                self.add_alias(before, alias);
                before.pop();
            }
            UseTree::Rename(rename) => {
                before.push(rename.ident.to_string());
                self.add_alias(before, rename.rename.to_string());
                before.pop();
            }
            UseTree::Glob(_) => self.add(before),
        }
    }

    fn add_alias(&mut self, path: &[String], alias: String) {
        self.add(path);
        let full = self.full(path);
        if full.len() > 1 || full[0] != alias {
            self.aliases.insert(alias, full);
        }
    }

    /// Adds the paths among the arguments of a macro, which have no syntax tree.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path = Names::new();
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) if colons == 2 && !path.is_empty() => {
                    path.push(name.to_string());
                }
                TokenTree::Ident(name) => {
                    self.add_path(std::mem::take(&mut path));
                    path.push(name.to_string());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.add_path(std::mem::take(&mut path));
                }
                TokenTree::Group(group) => {
                    self.add_path(std::mem::take(&mut path));
                    self.add_tokens(group.stream());
                }
            }
            colons = 0;
        }
        self.add_path(path);
    }

    /// Adds a path in code. A single name is a local item or came with a `use`.
    fn add_path(&mut self, path: Names) {
        if path.len() > 1 {
            self.add(&path);
        }
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::Path(_) | Meta::NameValue(_) => false,
    })
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_use(&mut self, _: &'ast ItemUse) {}

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add_path(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        if let Some(name) = call.path.get_ident() {
            self.uses.foreign.insert(format!("{name}!"));
        }
        self.add_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

/// Reads the `use` items of a file first, because code may come before them.
struct ReadUses<'r, 'f>(&'r mut Reader<'f>);

impl<'ast> Visit<'ast> for ReadUses<'_, '_> {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_test(&item.attrs) {
            self.0.add_tree(&mut Names::new(), &item.tree);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }
}
