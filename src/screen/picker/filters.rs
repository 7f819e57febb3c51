//! The filters of the picker, which keys switch: project, agent and time.

use schemas::Provider;

/// The sessions that the picker shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filters {
    /// The folder of the project, if only its sessions are shown.
    pub(super) project: Option<String>,
    pub(super) provider: Option<Provider>,
    pub(super) period: FilterPeriod,
}

/// The time in which a session was active.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FilterPeriod {
    #[default]
    Any,
    Day,
    Week,
    Month,
}

impl FilterPeriod {
    /// Returns the value of `since`; `None` for any time.
    pub(super) const fn since(self) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::Day => Some("24h"),
            Self::Week => Some("7d"),
            Self::Month => Some("30d"),
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Any => Self::Day,
            Self::Day => Self::Week,
            Self::Week => Self::Month,
            Self::Month => Self::Any,
        }
    }
}

impl Filters {
    /// Switches between all projects and the one of the folder `here`.
    pub(super) fn switch_project(&mut self, here: Option<&str>) {
        self.project = match self.project {
            Some(_) => None,
            None => here.map(str::to_owned),
        };
    }

    /// Switches to the next of the `known` agents, and after the last one to all of them.
    pub(super) fn switch_provider(&mut self, known: &[Provider]) {
        self.provider = match self.provider {
            None => known.first().copied(),
            Some(current) => {
                let at = known.iter().position(|provider| *provider == current);
                at.and_then(|at| known.get(at + 1)).copied()
            }
        };
    }

    /// Switches to the next period.
    pub(super) fn switch_period(&mut self) {
        self.period = self.period.next();
    }

    /// Describes the filters in a few words.
    pub(super) fn describe(&self) -> String {
        let mut words = Vec::new();
        if let Some(folder) = &self.project {
            let name = folder.rsplit(['/', '\\']).find(|part| !part.is_empty());
            words.push(format!("project {}", name.unwrap_or(folder)));
        }
        words.extend(self.provider.map(|provider| provider.to_string()));
        words.extend(self.period.since().map(|since| format!("last {since}")));
        if words.is_empty() { "all sessions".to_owned() } else { words.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_switched_in_a_circle() {
        let mut filters = Filters::default();
        assert_eq!(filters.describe(), "all sessions");
        filters.switch_project(Some("/home/mira/code/harbor/"));
        filters.switch_provider(&[Provider::Claude, Provider::Codex]);
        filters.switch_period();
        assert_eq!(filters.describe(), "project harbor, claude, last 24h");

        filters.switch_project(Some("/home/mira/code/harbor/"));
        filters.switch_provider(&[Provider::Claude, Provider::Codex]);
        filters.switch_provider(&[Provider::Claude, Provider::Codex]);
        for _ in 0..3 {
            filters.switch_period();
        }
        assert_eq!(filters, Filters::default());
    }
}
