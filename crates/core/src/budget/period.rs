//! Days and months, as the workspace's clock on the wall has them.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

use crate::time::Time;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A stretch of time that a budget is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// From the first to the last.
    Month,
}

impl Period {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Day, Self::Month];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The name of the stretch that a moment is in: `2026-11-16`, `2026-11`.
    #[must_use]
    pub fn name(self, at: Time, zone: &str) -> String {
        let date = zoned(at, zone).date();
        match self {
            Self::Day => date.to_string(),
            Self::Month => format!("{:04}-{:02}", date.year(), date.month()),
        }
    }

    /// When the stretch that a moment is in began.
    #[must_use]
    pub fn start(self, at: Time, zone: &str) -> Time {
        let local = zoned(at, zone);
        let date = match self {
            Self::Day => local.date(),
            Self::Month => local.date().first_of_month(),
        };
        let start = date.to_zoned(local.time_zone().clone());
        start.map_or(at, |start| Time::from_millis(start.timestamp().as_millisecond()))
    }

    /// When the stretch that a moment is in is over.
    #[must_use]
    pub fn end(self, at: Time, zone: &str) -> Time {
        let local = zoned(at, zone);
        let next = match self {
            Self::Day => local.date().checked_add(1.day()),
            Self::Month => local.date().first_of_month().checked_add(1.month()),
        };
        let end = next.and_then(|date| date.to_zoned(local.time_zone().clone()));
        end.map_or(at, |end| Time::from_millis(end.timestamp().as_millisecond()))
    }
}

/// A moment as somebody writes it: a time, or a day, which is the moment it begins on the wall.
#[must_use]
pub fn moment(text: &str, zone: &str) -> Option<Time> {
    text.parse().ok().or_else(|| {
        let day: jiff::civil::Date = text.parse().ok()?;
        let begin = day.to_zoned(ZONES.get(zone).unwrap_or(TimeZone::UTC)).ok()?;
        Some(Time::from_millis(begin.timestamp().as_millisecond()))
    })
}

/// The moment on the wall; UTC where the zone is not known.
fn zoned(at: Time, zone: &str) -> jiff::Zoned {
    let zone = ZONES.get(zone).unwrap_or(TimeZone::UTC);
    Timestamp::from_millisecond(at.millis()).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        text.parse().unwrap()
    }

    #[test]
    fn days_and_months_are_those_of_the_wall() {
        let late = at("2026-11-30T23:30:00Z");
        assert_eq!(
            (Period::Day.name(late, "UTC"), Period::Month.name(late, "UTC")),
            ("2026-11-30".into(), "2026-11".into())
        );
        assert_eq!(Period::Day.name(late, "Europe/Berlin"), "2026-12-01");
        assert_eq!(Period::Month.name(late, "Europe/Berlin"), "2026-12");
        assert_eq!(Period::Day.end(late, "UTC"), at("2026-12-01T00:00:00Z"));
        assert_eq!(Period::Month.end(late, "Europe/Berlin"), at("2026-12-31T23:00:00Z"));
        assert_eq!(Period::Month.start(late, "UTC"), at("2026-11-01T00:00:00Z"));
        assert_eq!(Period::Day.start(late, "nowhere"), at("2026-11-30T00:00:00Z"));
    }

    #[test]
    fn a_day_is_the_moment_it_begins_on_the_wall() {
        assert_eq!(moment("2026-12-01", "Europe/Berlin"), Some(at("2026-11-30T23:00:00Z")));
        assert_eq!(moment("2026-12-01T00:00:00Z", "Europe/Berlin"), Some(at("2026-12-01T00:00:00Z")));
        assert_eq!(moment("the first", "UTC"), None);
    }
}
