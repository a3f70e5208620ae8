//! What a list of keys is made of; the list itself is [`super::vocabulary`].

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number, both ends included.
    Whole(u64, u64),
    /// A number, both ends included.
    Number(f64, f64),
    /// A number above 0, up to this.
    Above0(f64),
    /// Above 0 and below 1.
    Share,
    /// At least so many values.
    List(&'static Kind, usize),
    /// One whole number, or a list of them.
    WholeOrList(u64, u64),
    /// Names of one's own, each with a text.
    Texts,
    /// A table of names and values of one's own.
    Free,
    /// A table.
    Table(&'static Table),
    /// At least so many tables.
    Tables(&'static Table, usize),
    /// One table, or a list of them.
    TableOrTables(&'static Table),
}

/// A table's keys.
#[derive(Debug)]
pub(super) struct Table {
    /// As it stands in the file: `[workload]`.
    pub(super) title: &'static str,
    /// In the order of the documentation.
    pub(super) groups: &'static [&'static [Key]],
    /// Whether what its numbers may be depends on other keys, so that it is checked elsewhere.
    pub(super) ranges_elsewhere: bool,
}

impl Table {
    /// All keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.groups.iter().copied().flatten()
    }

    /// The key of a name.
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// As written.
    pub(super) name: &'static str,
    /// What it holds.
    pub(super) kind: Kind,
    /// Whether its table is wrong without it.
    pub(super) required: bool,
    /// What it is when it is absent, as JSON.
    pub(super) default: Option<&'static str>,
    /// The values of `kind` beside which it may stand; any if empty.
    pub(super) only: &'static [&'static str],
    /// The values of `kind` beside which it must stand.
    pub(super) needed: &'static [&'static str],
    /// What 0, or an empty list, would mean, where that says more than a range.
    pub(super) zero: Option<&'static str>,
    /// For people.
    pub(super) about: &'static str,
}

pub(super) const fn key(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key {
        name,
        kind,
        required: false,
        default: None,
        only: &[],
        needed: &[],
        zero: None,
        about,
    }
}

impl Key {
    pub(super) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    pub(super) const fn default(self, json: &'static str) -> Self {
        Self {
            default: Some(json),
            ..self
        }
    }

    pub(super) const fn only(self, only: &'static [&'static str]) -> Self {
        Self { only, ..self }
    }

    pub(super) const fn needed(self, needed: &'static [&'static str]) -> Self {
        Self { needed, ..self }
    }

    pub(super) const fn zero(self, zero: &'static str) -> Self {
        Self {
            zero: Some(zero),
            ..self
        }
    }
}

pub(super) const fn table(title: &'static str, groups: &'static [&'static [Key]]) -> Table {
    Table {
        title,
        groups,
        ranges_elsewhere: false,
    }
}
