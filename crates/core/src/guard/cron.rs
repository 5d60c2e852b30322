//! Schedules (C1, C2): five fields with their Vixie meaning, in a time zone of the bundled database. Own code, because the
//! common crates count seconds, start the week elsewhere, or add signs of their own. The clock is an argument.

use std::sync::LazyLock;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use crate::time::Time;

/// The zones of the binary itself: what a schedule means must not depend on the machine it runs on.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Days looked at for the next one that matches: every date falls on every day of the week within forty years.
const DAYS_AHEAD: usize = 41 * 366;

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// The longest each month gets.
const MONTH_DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// A cron expression in a time zone.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
}

/// A cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: Field,
    days: Field,
    months: u64,
    weekdays: Field,
}

/// The values a field matches, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    values: u64,
    /// Whether it was written with a leading `*`, which to Vixie's cron means "not set", steps or not.
    star: bool,
}

/// Why a schedule cannot be saved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchedule {
    /// Not five fields and not a known macro.
    #[error(
        "a schedule has five fields (minute, hour, day, month, weekday) or is one of @yearly, @monthly, @weekly, @daily, @hourly"
    )]
    Shape,
    /// A field that cannot be read.
    #[error("the {field} {text:?} is not a list of numbers, ranges and steps from {low} to {high}")]
    Field {
        /// Which one.
        field: &'static str,
        /// What it says.
        text: String,
        /// Its least value.
        low: u32,
        /// Its greatest value.
        high: u32,
    },
    /// A zone that is not in the database.
    #[error("the time zone {0:?} is not known; zones are named as in Europe/Berlin")]
    Zone(String),
    /// A date that never comes, as the 30th of February.
    #[error("this schedule never comes")]
    Never,
}

impl Schedule {
    /// Reads a schedule that may be saved.
    ///
    /// # Errors
    /// Fails when the expression or the zone is not valid, or when the schedule never comes.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, InvalidSchedule> {
        let cron = Cron::parse(expression)?;
        let zone = ZONES.get(zone).map_err(|_| InvalidSchedule::Zone(zone.to_owned()))?;
        if cron.never_comes() { Err(InvalidSchedule::Never) } else { Ok(Self { cron, zone }) }
    }

    /// The zone its times are in.
    #[must_use]
    pub const fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The first time strictly after this one; none only at the end of the calendar.
    #[must_use]
    pub fn next(&self, after: Time) -> Option<Time> {
        let after = Timestamp::from_millisecond(after.millis()).ok()?;
        self.cron.next(after, &self.zone).map(|next| Time::from_millis(next.as_millisecond()))
    }
}

impl Cron {
    /// Reads an expression (C1).
    ///
    /// # Errors
    /// Fails on everything that is not plain Vixie cron.
    pub fn parse(expression: &str) -> Result<Self, InvalidSchedule> {
        let expression = expression.trim_matches([' ', '\t']);
        let expression = match expression {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = expression.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else { return Err(InvalidSchedule::Shape) };
        let mut weekdays = field("weekday", weekday, (0, 7), WEEKDAYS)?;
        // Sunday is both 0 and 7.
        weekdays.values = (weekdays.values | weekdays.values >> 7) & 0x7F;
        Ok(Self {
            minutes: field("minute", minute, (0, 59), &[])?.values,
            hours: field("hour", hour, (0, 23), &[])?,
            days: field("day", day, (1, 31), &[])?,
            months: field("month", month, (1, 12), MONTHS)?.values,
            weekdays,
        })
    }

    /// Whether no date matches, as for the 30th of February.
    #[must_use]
    pub fn never_comes(&self) -> bool {
        let either = !self.days.star && !self.weekdays.star;
        let exists =
            |(month, longest): (u32, u32)| has(self.months, month) && self.days.values & ((2 << longest) - 1) != 0;
        !either && !(1..).zip(MONTH_DAYS).any(exists)
    }

    /// The first time strictly after this one (C2).
    #[must_use]
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let today = after.to_zoned(zone.clone()).date();
        // A day earlier, for a zone that has just jumped over the date line; a day later, because a clock set back over
        // midnight mixes two dates.
        let first = today.yesterday().unwrap_or(today);
        let mut found: Option<Timestamp> = None;
        for date in first.series(jiff::Span::new().days(1)).take(DAYS_AHEAD) {
            let had = found.is_some();
            if self.matches(date) {
                let next = self.times(date, zone).filter(|time| *time > after).min();
                found = found.into_iter().chain(next).min();
            }
            if had {
                break;
            }
        }
        found
    }

    fn matches(&self, date: Date) -> bool {
        let day = has(self.days.values, u32::from(date.day().unsigned_abs()));
        let weekday = has(self.weekdays.values, u32::from(date.weekday().to_sunday_zero_offset().unsigned_abs()));
        let fits = if self.days.star || self.weekdays.star { day && weekday } else { day || weekday };
        fits && has(self.months, u32::from(date.month().unsigned_abs()))
    }

    /// The moments of one date, in no particular order.
    fn times<'a>(&'a self, date: Date, zone: &'a TimeZone) -> impl Iterator<Item = Timestamp> + 'a {
        let hours = (0..24_i8).filter(|hour| has(self.hours.values, u32::from(hour.unsigned_abs())));
        let clock = hours.flat_map(move |hour| {
            let minutes = (0..60_i8).filter(|minute| has(self.minutes, u32::from(minute.unsigned_abs())));
            minutes.map(move |minute| date.at(hour, minute, 0, 0))
        });
        clock.flat_map(|time| self.moments(time, zone)).flatten()
    }

    /// When the clock shows this time. With fixed hours exactly once: a time that is skipped comes at the end of the gap,
    /// one that is repeated comes the first time. With any hour as often as it really does.
    fn moments(&self, time: DateTime, zone: &TimeZone) -> [Option<Timestamp>; 2] {
        let at = |offset: jiff::tz::Offset| offset.to_timestamp(time).ok();
        match zone.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } => [at(offset), None],
            AmbiguousOffset::Fold { before, after } => [at(before), if self.hours.star { at(after) } else { None }],
            AmbiguousOffset::Gap { .. } if self.hours.star => [None, None],
            // With the offset from before the gap the time lies behind its end, by less than the next change.
            AmbiguousOffset::Gap { before, .. } => {
                let behind = at(before).and_then(|time| time.checked_add(SignedDuration::from_secs(1)).ok());
                [behind.and_then(|behind| zone.preceding(behind).next()).map(|change| change.timestamp()), None]
            }
        }
    }
}

fn has(values: u64, value: u32) -> bool {
    values >> value & 1 == 1
}

fn field(name: &'static str, text: &str, (low, high): (u32, u32), names: &[&str]) -> Result<Field, InvalidSchedule> {
    let invalid = || InvalidSchedule::Field { field: name, text: text.to_owned(), low, high };
    let mut values = 0;
    for item in text.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(number(step).filter(|step| *step > 0).ok_or_else(invalid)?)),
            None => (item, None),
        };
        let value = |text: &str| -> Result<u32, InvalidSchedule> {
            let named = (low..).zip(names).find(|(_, name)| text.eq_ignore_ascii_case(name)).map(|(value, _)| value);
            named.or_else(|| number(text)).filter(|value| (low..=high).contains(value)).ok_or_else(invalid)
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (low, high),
            Some((first, last)) => (value(first)?, value(last)?),
            // A lone value with a step runs to the end of the field.
            None => (value(range)?, if step.is_some() { high } else { value(range)? }),
        };
        if first > last {
            return Err(invalid());
        }
        for value in (first..=last).step_by(usize::try_from(step.unwrap_or(1)).unwrap_or(usize::MAX)) {
            values |= 1 << value;
        }
    }
    Ok(Field { values, star: text.starts_with('*') })
}

/// A number of at most three digits: no field needs more, and no sign is one.
fn number(text: &str) -> Option<u32> {
    let plain = (1..=3).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INVALID: &[&str] = &[
        "",
        " ",
        "* * * *",
        "* * * * * *",
        "0 0 0 1 1 *",
        "@reboot",
        "@every 5m",
        "@Daily",
        "@",
        "@daily x",
        "? * * * *",
        "0 0 ? * 1",
        "0 0 L * *",
        "0 0 15W * *",
        "0 0 * * 1#2",
        "0 0 * * 5L",
        "0 0 LW * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "-1 * * * *",
        "+1 * * * *",
        "1- * * * *",
        "5-1 * * * *",
        "* * * * fri-mon",
        "* * * * sat-sun",
        "*/0 * * * *",
        "1/0 * * * *",
        "*/-1 * * * *",
        "*/ * * * *",
        "/5 * * * *",
        "1,,2 * * * *",
        ",1 * * * *",
        "1, * * * *",
        "** * * * *",
        "*5 * * * *",
        "*-5 * * * *",
        "1-2-3 * * * *",
        "1/2/3 * * * *",
        "1.5 * * * *",
        "0x1 * * * *",
        "jan * * * *",
        "* * * * monday",
        "* * * sept *",
        "* * mon * *",
        "* * * * jan",
        "١ * * * *",
        "*\n* * * *",
        "* * * * *\n",
        "~ * * * *",
        "H * * * *",
        "0001 * * * *",
        "1\u{A0}* * * *",
    ];

    fn schedule(expression: &str, zone: &str) -> Schedule {
        Schedule::parse(expression, zone).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn times(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let schedule = schedule(expression, zone);
        let first: Time = after.parse().unwrap();
        std::iter::successors(schedule.next(first), |time| schedule.next(*time))
            .take(count)
            .map(|time| time.to_string().replace(":00.000Z", "Z"))
            .collect()
    }

    #[track_caller]
    fn check(expression: &str, zone: &str, after: &str, expected: &[&str]) {
        assert_eq!(times(expression, zone, after, expected.len()), expected, "{expression} {zone}");
    }

    #[test]
    fn c1_fields_are_lists_ranges_and_steps() {
        let utc = |expression, after, expected: &[&str]| check(expression, "UTC", after, expected);
        utc("15 10 * * *", "2026-01-30T10:14:59Z", &["2026-01-30T10:15Z", "2026-01-31T10:15Z"]);
        utc("0 9 * * 1", "2026-01-30T10:15:30Z", &["2026-02-02T09:00Z", "2026-02-09T09:00Z"]);
        utc(
            "0,30 9-10 * * *",
            "2026-01-01T00:00:00Z",
            &["2026-01-01T09:00Z", "2026-01-01T09:30Z", "2026-01-01T10:00Z"],
        );
        utc("*/20 * * * *", "2026-01-01T00:00:00Z", &["2026-01-01T00:20Z", "2026-01-01T00:40Z", "2026-01-01T01:00Z"]);
        utc("50/5 0 * * *", "2026-01-01T00:00:00Z", &["2026-01-01T00:50Z", "2026-01-01T00:55Z", "2026-01-02T00:50Z"]);
        utc("10-30/10 0 1 JAN Mon-Fri", "2026-01-01T00:00:00Z", &["2026-01-01T00:10Z", "2026-01-01T00:20Z"]);
        utc("0 0 * feb *", "2026-01-01T00:00:00Z", &["2026-02-01T00:00Z"]);
        utc("*/90 0 * * *", "2026-01-01T00:00:00Z", &["2026-01-02T00:00Z"]);
        utc("  5\t4 * * * ", "2026-01-01T00:00:00Z", &["2026-01-01T04:05Z"]);
        utc("0 0 29 2 *", "2026-01-01T00:00:00Z", &["2028-02-29T00:00Z", "2032-02-29T00:00Z"]);
        utc("0 0 29 2 *", "2096-03-01T00:00:00Z", &["2104-02-29T00:00Z"]);
    }

    #[test]
    fn c1_zero_and_seven_are_sunday() {
        for expression in ["0 0 * * 0", "0 0 * * 7", "0 0 * * sun", "0 0 * * SUN", "0 0 * * 7-7", "0 0 * * 7/2"] {
            check(expression, "UTC", "2026-01-01T00:00:00Z", &["2026-01-04T00:00Z", "2026-01-11T00:00Z"]);
        }
        check(
            "0 0 * * 6-7",
            "UTC",
            "2026-01-01T00:00:00Z",
            &["2026-01-03T00:00Z", "2026-01-04T00:00Z", "2026-01-10T00:00Z"],
        );
        check(
            "0 0 * * 5/1",
            "UTC",
            "2026-01-01T00:00:00Z",
            &["2026-01-02T00:00Z", "2026-01-03T00:00Z", "2026-01-04T00:00Z"],
        );
    }

    #[test]
    fn c1_both_day_fields_set_means_either() {
        check(
            "0 0 13 * 5",
            "UTC",
            "2026-01-01T00:00:00Z",
            &["2026-01-02T00:00Z", "2026-01-09T00:00Z", "2026-01-13T00:00Z"],
        );
        check("0 0 13 * *", "UTC", "2026-01-01T00:00:00Z", &["2026-01-13T00:00Z", "2026-02-13T00:00Z"]);
        check("0 0 * * 5", "UTC", "2026-01-01T00:00:00Z", &["2026-01-02T00:00Z", "2026-01-09T00:00Z"]);
        check("0 0 30 2 1", "UTC", "2026-01-01T00:00:00Z", &["2026-02-02T00:00Z"]);
        // A field that begins with a star is not set, steps or not.
        check("0 0 */2 * 1", "UTC", "2026-01-01T00:00:00Z", &["2026-01-05T00:00Z", "2026-01-19T00:00Z"]);
    }

    #[test]
    fn c1_macros_stand_for_their_fields() {
        for (name, fields) in [
            ("@yearly", "0 0 1 1 *"),
            ("@annually", "0 0 1 1 *"),
            ("@monthly", "0 0 1 * *"),
            ("@weekly", "0 0 * * 0"),
            ("@daily", "0 0 * * *"),
            ("@midnight", "0 0 * * *"),
            ("@hourly", "0 * * * *"),
        ] {
            assert_eq!(Cron::parse(name), Cron::parse(fields));
        }
    }

    #[test]
    fn c1_everything_else_is_invalid() {
        for expression in INVALID {
            assert!(Cron::parse(expression).is_err(), "{expression:?}");
        }
        assert_eq!(
            Schedule::parse("* * * * *", "Mars/Base").err(),
            Some(InvalidSchedule::Zone("Mars/Base".to_owned()))
        );
        assert!(Schedule::parse("* * * * *", "").is_err());
    }

    #[test]
    fn c1_a_date_that_never_comes_may_not_be_saved() {
        for expression in ["0 0 30 2 *", "0 0 31 4 *", "0 0 31 2,4,6,9,11 *", "0 0 30,31 2 */2"] {
            assert_eq!(Schedule::parse(expression, "UTC").err(), Some(InvalidSchedule::Never), "{expression}");
        }
        for expression in ["0 0 29 2 *", "0 0 31 * *", "0 0 31 4,5 *", "0 0 30 2 0"] {
            assert!(Schedule::parse(expression, "UTC").is_ok(), "{expression}");
        }
    }

    #[test]
    fn c2_the_next_time_is_strictly_after() {
        check("15 10 * * *", "UTC", "2026-01-30T10:15:00Z", &["2026-01-31T10:15Z"]);
        check("15 10 * * *", "UTC", "2026-01-30T10:14:59.999Z", &["2026-01-30T10:15Z"]);
        check("* * * * *", "UTC", "2026-12-31T23:59:00Z", &["2027-01-01T00:00Z"]);
    }

    #[test]
    fn c2_times_are_in_the_zone() {
        check("0 9 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", &["2026-01-01T08:00Z"]);
        check("0 9 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", &["2026-07-01T07:00Z"]);
        check("30 0 * * 1", "Asia/Kolkata", "2026-01-01T00:00:00Z", &["2026-01-04T19:00Z"]);
        check("0 0 1 1 *", "Pacific/Kiritimati", "2026-01-01T00:00:00Z", &["2026-12-31T10:00Z"]);
    }

    #[test]
    fn c2_a_fixed_time_in_a_spring_gap_comes_once_at_its_end() {
        // Berlin: 2026-03-29, 02:00 becomes 03:00 at 01:00Z.
        check("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00Z", "2026-03-30T00:30Z"]);
        check("0 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00Z", "2026-03-30T00:00Z"]);
        check("*/15 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00Z", "2026-03-30T00:00Z"]);
        check("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00Z", "2026-03-30T00:00Z"]);
        check("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", &["2026-03-30T00:30Z"]);
        // Lord Howe moves by half an hour; Samoa jumped over a whole day.
        check("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", &["2026-10-03T15:30Z", "2026-10-04T15:15Z"]);
        check("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", &["2011-12-30T10:00Z", "2012-12-29T22:00Z"]);
        // Beirut: midnight itself is skipped.
        check("0 0 * * *", "Asia/Beirut", "2026-03-28T12:00:00Z", &["2026-03-28T22:00Z", "2026-03-29T21:00Z"]);
    }

    #[test]
    fn c2_a_repeated_fixed_time_comes_the_first_time() {
        // Berlin: 2026-10-25, 03:00 becomes 02:00 at 01:00Z.
        check("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &["2026-10-25T00:30Z", "2026-10-26T01:30Z"]);
        check(
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:00Z", "2026-10-25T00:30Z", "2026-10-26T01:00Z"],
        );
        check("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", &["2026-10-26T01:30Z"]);
    }

    #[test]
    fn c2_any_hour_follows_real_time() {
        check(
            "30 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:00:00Z",
            &["2026-03-29T00:30Z", "2026-03-29T01:30Z", "2026-03-29T02:30Z"],
        );
        check(
            "30 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:45:00Z",
            &["2026-10-25T00:30Z", "2026-10-25T01:30Z", "2026-10-25T02:30Z"],
        );
        check(
            "@hourly",
            "Australia/Lord_Howe",
            "2026-04-04T13:30:00Z",
            &["2026-04-04T14:00Z", "2026-04-04T15:30Z", "2026-04-04T16:30Z"],
        );
        // St. John's set its clock back at one minute past midnight, so two dates are mixed.
        check(
            "* * * * *",
            "America/St_Johns",
            "2006-10-29T02:29:00Z",
            &["2006-10-29T02:30Z", "2006-10-29T02:31Z", "2006-10-29T02:32Z"],
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn the_next_time_is_the_first_minute_that_matches(
            minute in "\\*|\\*/[1-9]|[0-9]|[0-9],3[0-9]", hour in "\\*|1?[0-9]", day in "\\*|[1-9]|\\*/[2-9]",
            month in "\\*|[1-9]", weekday in "\\*|[0-7]", after in 1_600_000_000_i64..1_900_000_000,
        ) {
            // In UTC no clock is ever set, so looking at one minute after another is the whole truth.
            let cron = Cron::parse(&format!("{minute} {hour} {day} {month} {weekday}")).unwrap();
            let after = Timestamp::from_second(after).unwrap();
            let next = cron.next(after, &TimeZone::UTC).unwrap();
            let shows = |stamp: Timestamp| {
                let time = TimeZone::UTC.to_datetime(stamp);
                has(cron.minutes, time.minute().unsigned_abs().into())
                    && has(cron.hours.values, time.hour().unsigned_abs().into())
                    && cron.matches(time.date())
            };
            prop_assert!(next > after && next.as_second() % 60 == 0 && shows(next));
            let minutes = (after.as_second() / 60 + 1)..(next.as_second() / 60).min(after.as_second() / 60 + 20_000);
            prop_assert!(!minutes.into_iter().any(|minute| shows(Timestamp::from_second(minute * 60).unwrap())));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9*/, a-z@-]{0,20}|\\PC{0,20}") {
            if let Ok(cron) = Cron::parse(&text) {
                prop_assert_eq!(cron.next(Timestamp::UNIX_EPOCH, &TimeZone::UTC).is_none(), cron.never_comes());
            }
        }
    }
}
